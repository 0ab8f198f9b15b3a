"""Keys and values of the positions that came before, so that each is computed once.

Every kind of cache is handed the queries, keys and values of new positions and answers what attention to all that they
may see gives; how it keeps them is its own affair. It is written in place, except where gradients are kept: a call uses
up the cache it is handed and returns the one to go on with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.kernels.step_attention import step_attention

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention of T queries (B, N, T, K) to keys and values (B, N, S, K), of which the last T are their own."""


class KVCache(NamedTuple):
    """The first n positions of each row, in memory for more."""

    keys: Float[Tensor, "B N C K"]
    values: Float[Tensor, "B N C K"]
    n: int

    @staticmethod
    def empty(B: int, n_heads: int, capacity: int, d_head: int, like: Tensor) -> KVCache:
        """Make room for `capacity` positions, of the type and device of `like`."""
        shape = B, n_heads, capacity, d_head
        return KVCache(like.new_zeros(shape), like.new_zeros(shape), 0)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attention: Attention, is_ordered: bool = False
    ) -> tuple[Float[Tensor, "B N T K"], KVCache]:
        """Write the new keys and values behind those there are, and let the queries see all of them."""
        (keys, values, n), S, capacity = self, self.n + k.shape[2], self.keys.shape[2]
        assert capacity >= S, f"{S} positions in a cache with room for {capacity}"
        if k.requires_grad:  # what the backward pass will read must not be written over
            keys = torch.cat([keys[:, :, :n], k, keys[:, :, S:]], dim=2)
            values = torch.cat([values[:, :, :n], v, values[:, :, S:]], dim=2)
        else:
            keys[:, :, n:S] = k
            values[:, :, n:S] = v
        return attention(q, keys[:, :, :S], values[:, :, :S]), KVCache(keys, values, S)

    def with_room(self, n_more: int) -> KVCache:
        """Make it twice as long where it has no room for `n_more` positions.

        One that grows is never much longer than what is in it, and so cheap to reorder, which copies all of it.
        """
        capacity = self.keys.shape[2]
        if self.n + n_more <= capacity:
            return self
        more = (0, 0, 0, max(capacity, self.n + n_more - capacity))
        return KVCache(functional.pad(self.keys, more), functional.pad(self.values, more), self.n)


class RollingKVCache(NamedTuple):
    """The last R = min(n_window, capacity) of n positions of each row, position i in slot i mod R."""

    keys: Float[Tensor, "B N R K"]
    values: Float[Tensor, "B N R K"]
    n: int
    n_window: int

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attention: Attention, is_ordered: bool = False
    ) -> tuple[Float[Tensor, "B N T K"], RollingKVCache]:
        """Let position n take the place of n - R; a query sees itself and the n_window - 1 positions before it.

        A single query sees all that is left, and the order of keys means nothing to it: none is copied unless
        `is_ordered`, where they are wanted oldest first.
        """
        (keys, values, n, r), T, R = self, k.shape[2], self.keys.shape[2]
        assert r == R or n + T <= R, f"{n + T} positions in a cache with room for {R}"
        if T == 1 and not is_ordered:
            keys[:, :, n % R], values[:, :, n % R] = k[:, :, 0], v[:, :, 0]
            S = min(n + 1, R)
            return attention(q, keys[:, :, :S], values[:, :, :S]), self._replace(n=n + 1)
        before = torch.arange(max(0, n - r + 1), n, device=k.device) % R
        seen_k, seen_v = torch.cat([keys[:, :, before], k], dim=2), torch.cat([values[:, :, before], v], dim=2)
        n_kept = min(T, R)
        slots = torch.arange(n + T - n_kept, n + T, device=k.device) % R
        keys[:, :, slots], values[:, :, slots] = k[:, :, T - n_kept :], v[:, :, T - n_kept :]
        return attention(q, seen_k, seen_v), self._replace(n=n + T)

    def with_room(self, n_more: int) -> RollingKVCache:
        """Return it as it is: what is beyond its window is forgotten."""
        return self


class StaticKVCache(NamedTuple):
    """Positions in memory that stays where it is, for steps of one position that are replayed as a CUDA graph.

    How many there are is a number on the device, and whoever replays the step counts. With a table `where`, position t
    of row r lies in row where[r, t] (`step_attention` says what for).
    """

    keys: Float[Tensor, "B N C K"]
    values: Float[Tensor, "B N C K"]
    n: Int[Tensor, " one"]
    where: Int[Tensor, "B C"] | None = None

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attention: Attention, is_ordered: bool = False
    ) -> tuple[Float[Tensor, "B N 1 K"], StaticKVCache]:
        """Write the new position's key and value at place n, and let it see all up to there."""
        return step_attention(q, k, v, self.keys, self.values, self.n, self.where), self

    def with_room(self, n_more: int) -> StaticKVCache:
        """Return it as it is: what is replayed cannot grow."""
        return self


AnyKVCache = KVCache | RollingKVCache | StaticKVCache
