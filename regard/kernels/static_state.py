"""State in memory that stays where it is, so that a step can be captured once as a CUDA graph and replayed.

A number that a state counts is then a tensor (1,) on the device. A search reorders its hypotheses at every step, and
one that ends leaves fewer. Here nothing of this moves what is large: there is room for a number of rows, which of them
are in use is their reader's affair, and reordering them changes numbers that say where each row's past lies and which
source it looks at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.kernels.kv_cache import KVCache, StaticKVCache
from regard.kernels.state import Pointing, Shared, leaves, map_state, rebuild, tensors_of


def count_on_device(state: Any, device: torch.device) -> Any:
    """Put every number of a state on the device; equal numbers are one tensor, since they count one thing."""
    counts: dict[int, Tensor] = {}

    def move(part: Any) -> Any:
        if isinstance(part, int):
            return counts.setdefault(part, torch.tensor([part], device=device))
        if isinstance(part, KVCache):
            return StaticKVCache(part.keys, part.values, move(part.n))
        return rebuild(part, [move(each) for each in part]) if isinstance(part, tuple) else part

    return move(state)


def count_on_host(state: Any, n: int) -> Any:
    """Undo `count_on_device`: every number is n."""
    if isinstance(state, StaticKVCache):
        return KVCache(state.keys, state.values, n)
    if isinstance(state, tuple):
        return rebuild(state, [count_on_host(part, n) for part in state])
    return n if isinstance(state, Tensor) and is_count(state) else state


def is_count(part: Tensor) -> bool:
    return part.dtype == torch.int64 and part.shape == (1,)


def table_rows(table: Float[Tensor, "M D"], start: int | Tensor, T: int) -> Float[Tensor, "T D"]:
    """Take rows start ... start + T - 1 of a table; a start on the device, (1,), is for one row."""
    return table.index_select(0, start) if isinstance(start, Tensor) else table[start : start + T]


def move_to(here: Any, new: Any) -> None:
    """Copy the values of a state into the memory of another; what lies there already stays."""
    for place, value in zip(leaves(here), leaves(new), strict=True):
        if isinstance(value, int):
            place.fill_(value)
        elif place.data_ptr() != value.data_ptr():
            place.copy_(value)


def changing(state: Any) -> list[Tensor]:
    """List what a step changes, except for the positions of a cache that it fills: the next one fills them again."""
    return [part for part in tensors_of(state) if part.ndim < 4]  # a cache has four dimensions


def write_corner(here: Tensor, new: Tensor) -> None:
    """Write a tensor into the corner of a larger one."""
    here[tuple(slice(0, n) for n in new.shape)].copy_(new)


class Room(NamedTuple):
    """How large the memory of a decoder's state is."""

    n_rows: int
    n_sources: int
    source_length: int
    n_positions: int
    """Of a target."""


class StaticState:
    """A decoder's state with room for any batch of a size: `state` is what the decoder is handed."""

    def __init__(self, like: Any, room: Room) -> None:
        """Make memory for states like this one, with nothing in it yet."""
        self.room = room
        device = tensors_of(like)[0].device
        self._rows = torch.arange(room.n_rows, dtype=torch.int32, device=device)[:, None]
        self._count = torch.zeros(1, dtype=torch.int64, device=device)
        has_cache = holds(like, KVCache)
        table = room.n_rows, room.n_positions
        self._where = self._count.new_zeros(table, dtype=torch.int32) if has_cache else None
        self.state = self._make(like)

    def _make(self, part: Any) -> Any:
        if isinstance(part, int):
            return self._count
        if isinstance(part, Shared):
            of = torch.zeros(self.room.n_rows, dtype=torch.int64, device=self._count.device)
            return Pointing(map_state(self._make_source, part.entries), of)
        if isinstance(part, KVCache):
            _, N, _, K = part.keys.shape
            shape = self.room.n_rows, N, self.room.n_positions, K
            return StaticKVCache(part.keys.new_zeros(shape), part.values.new_zeros(shape), self._count, self._where)
        if isinstance(part, tuple):
            return rebuild(part, [self._make(each) for each in part])
        return part.new_zeros(self.room.n_rows, *part.shape[1:])

    def _make_source(self, part: Tensor) -> Tensor:
        """Keys and values (B, N, S, K) of a source have its length third, everything else second."""
        at = 2 if part.ndim == 4 else 1
        return part.new_zeros([self.room.n_sources, *part.shape[1:at], self.room.source_length, *part.shape[at + 1 :]])

    def fill(self, state: Any) -> None:
        """Put a state into the first rows."""
        self._fill(self.state, state)
        if self._where is not None:
            self._where.copy_(self._rows.expand_as(self._where))

    def _fill(self, here: Any, new: Any) -> None:
        if isinstance(here, Pointing):
            for place, value in zip(leaves(here.entries), leaves(new.entries), strict=True):
                if place.dtype == torch.bool:
                    place.zero_()  # what was there before is there no more
                write_corner(place, value)
            n_rows = len(tensors_of(new.entries)[0]) * new.n_each
            here.of[:n_rows] = torch.arange(n_rows, device=here.of.device) // new.n_each
        elif isinstance(here, StaticKVCache):
            write_corner(here.keys, new.keys)
            write_corner(here.values, new.values)
        elif isinstance(here, tuple):
            for place, value in zip(here, new, strict=True):
                self._fill(place, value)
        elif isinstance(new, int):
            here.fill_(new)
        else:
            write_corner(here, new)

    def follow(self, rows: Int[Tensor, " R"]) -> None:
        """Reorder it: row r goes on from what row rows[r] was. Before each step, also where nothing changes."""
        if self._where is not None:
            follow_rows(self._where, rows)
            self._where.index_copy_(1, self._count, self._rows)
        self._follow(self.state, rows)

    def _follow(self, here: Any, rows: Int[Tensor, " R"]) -> None:
        if isinstance(here, Pointing):
            follow_rows(here.of, rows)
        elif isinstance(here, tuple) and not isinstance(here, StaticKVCache):
            for part in here:
                self._follow(part, rows)
        elif isinstance(here, Tensor) and here is not self._count:
            follow_rows(here, rows)


def follow_rows(part: Tensor, rows: Int[Tensor, " R"]) -> None:
    part.copy_(part.index_select(0, rows))


def holds(state: Any, kind: type) -> bool:
    """Whether there is something of this kind in a state."""
    return isinstance(state, kind) or (isinstance(state, tuple) and any(holds(part, kind) for part in state))
