"""A decoder's state in memory that stays where it is, so that a step can be recorded once and replayed.

A search reorders its hypotheses at every step, and one that ends leaves fewer. Here nothing of this moves what is
large: there is room for a number of rows, which of them are in use is their reader's affair, and reordering them
changes numbers that say where each row's past lies and which source it looks at.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from regard.layers.shared_rows import Pointing, Shared


class Room(NamedTuple):
    """How large the memory is."""

    n_rows: int
    n_sources: int
    source_length: int
    n_positions: int
    """Of a target."""


@runtime_checkable
class StillDecoder(Protocol):
    """A decoder whose state can stay."""

    def still(self, state: Any, room: Room) -> Any:
        """Memory for states like this one, with nothing in it yet."""

    def fill(self, still: Any, state: Any) -> None:
        """Put a state into its first rows."""

    def follow(self, still: Any, rows: Int[Tensor, " R"]) -> None:
        """Reorder it: row r goes on from what row rows[r] was. Before each step, also where nothing changes."""


def still_source(shared: Shared, room: Room) -> Pointing:
    """Memory for what targets share of their sources: tensors with sources first, one other size being their length.

    Keys and values (B, N, S, K) have it third, everything else second.
    """

    def stays(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(stays(each) for each in part)
        at = 2 if part.ndim == 4 else 1
        shape = [room.n_sources, *part.shape[1:at], room.source_length, *part.shape[at + 1 :]]
        return part.new_zeros(shape)

    of = torch.zeros(room.n_rows, dtype=torch.int64, device=_first(shared.entries).device)
    return Pointing(stays(shared.entries), of)


def put_source(pointing: Pointing, shared: Any) -> None:
    """Put sources into the first entries; what was there before is there no more."""

    def puts(here: Any, new: Any) -> None:
        if isinstance(here, tuple):
            for part, given in zip(here, new, strict=True):
                puts(part, given)
            return
        if here.dtype == torch.bool:
            here.zero_()
        put(here, new)

    puts(pointing.entries, shared.entries)
    n_rows = len(_first(shared.entries)) * shared.n_each
    pointing.of[:n_rows] = torch.arange(n_rows, device=pointing.of.device) // shared.n_each


def put(here: Tensor, new: Tensor) -> None:
    """Write a tensor into the corner of a larger one."""
    here[tuple(slice(0, n) for n in new.shape)].copy_(new)


def followed_rows(part: Tensor, rows: Int[Tensor, " R"]) -> None:
    part.copy_(part.index_select(0, rows))


def _first(tree: Any) -> Tensor:
    return tree if isinstance(tree, Tensor) else _first(tree[0])
