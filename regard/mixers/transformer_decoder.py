"""The Transformer decoder that looks at a source."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.attention import Followed, KeysAndValues, MultiHeadAttention, with_room
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.feed_forward import FeedForward
from regard.layers.low_precision import lowered
from regard.layers.positions import positions
from regard.layers.record import Record
from regard.layers.shared_rows import Pointing, Shared
from regard.mixers.config import TransformerConfig
from regard.mixers.decoder import Weights
from regard.mixers.still import Room, followed_rows, put, put_source, still_source

Caches = tuple[int | Tensor, tuple[KeysAndValues | None, ...], Shared | Pointing]
"""How many positions came before; every layer's keys and values of these (None: there will be no later call); what all
targets of a source share: every layer's keys and values of the source, and which of its positions are there. Where it
is to stay in its place (regard/mixers/still.py), the number is a tensor (1,) and the caches have tables of rows."""
FIRST_CAPACITY = 16
"""Positions that a cache has room for before it grows."""


class DecoderBlock(nn.Module):
    """Attention to the past, attention to the source, a feed-forward layer, each added to its own input.

    pre:   x = x + attention(norm(x)),  x = x + cross_attention(norm(x)),  x = x + feed_forward(norm(x))
    post:  x = norm(x + attention(x)),  x = norm(x + cross_attention(x)),  x = norm(x + feed_forward(x))

    (Vaswani et al. 2017.) Its parts are named as those of the block that has no source.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        D, N, p = config.d_model, config.n_heads, config.p_dropout
        self.is_pre_norm = config.norm == "pre"
        self.norm_attention, self.norm_cross, self.norm_feed_forward = (nn.LayerNorm(D) for _ in range(3))
        self.attention = MultiHeadAttention(D, N, p)
        self.cross_attention = CrossAttention(D, N, p)
        self.feed_forward = FeedForward(D, config.d_ff or 4 * D, config.activation)
        self.dropout = nn.Dropout(p)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        cache: KeysAndValues | None,
        source: SourceKeysAndValues,
        mask: Bool[Tensor, "B S"],
        record: Record | None = None,
        wants_weights: bool = False,
        of: Int[Tensor, " R"] | None = None,
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R N T S"] | None, KeysAndValues | None]:
        if self.is_pre_norm:
            y, cache = self.attention(self.norm_attention(x), cache, record)
            x = x + self.dropout(y)
            y, A = self.cross_attention(self.norm_cross(x), source, mask, record, wants_weights, of)
            x = x + self.dropout(y)
            return x + self.dropout(self.feed_forward(self.norm_feed_forward(x))), A, cache
        y, cache = self.attention(x, cache, record)
        x = self.norm_attention(x + self.dropout(y))
        y, A = self.cross_attention(x, source, mask, record, wants_weights, of)
        x = self.norm_cross(x + self.dropout(y))
        return self.norm_feed_forward(x + self.dropout(self.feed_forward(x))), A, cache

    def flops(self, n_source: int, n_target: int) -> int:
        own = self.attention.flops_per_token(n_target) + self.feed_forward.flops_per_token()
        return n_target * own + self.cross_attention.flops(n_source, n_target)


class TransformerDecoder(nn.Module):
    """x^0 = positions(x),  x^l = block_l(x^{l-1}, s),  y = norm(x^L) with norm before the sums, x^L with norm after.

    Its weights on the source are the mean over the heads of the last layer, where `gives_weights` asks for them.
    """

    def __init__(self, config: TransformerConfig, gives_weights: bool = False) -> None:
        super().__init__()
        D = config.d_model
        self.positions = positions(config.positions, config.max_context, D)
        blocks = [DecoderBlock(config) for _ in range(config.n_layers)]
        self.layers: Sequence[DecoderBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(D) if config.norm == "pre" else nn.Identity()
        self.dropout = nn.Dropout(config.p_dropout)
        self.max_context: int | None = config.max_context
        self.gives_weights = gives_weights

    def forward(
        self, x: Float[Tensor, "B T D"], state: Caches, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], Weights | None, Caches]:
        n_before, caches, shared = state
        sources, mask = shared.entries
        of = shared.of if isinstance(shared, Pointing) else None
        T, A = x.shape[1], None
        x = lowered(self.dropout(self.positions(x, n_before)))
        after: list[KeysAndValues | None] = []
        for index, block in enumerate(self.layers):
            scope = None if record is None else record.scope(f"layers.{index}")
            wants_weights = self.gives_weights and index == len(self.layers) - 1
            before = caches[index]
            room = before if before is None or of is not None else with_room(before, T)
            x, A, cache = block(x, room, sources[index], mask, scope, wants_weights, of)
            if scope is not None:
                scope.keep("hidden", x)
            after.append(cache)
        weights = A.mean(dim=1) if self.gives_weights and A is not None else None
        return lowered(self.norm(x)), weights, (n_before + T, tuple(after), shared)

    def start(
        self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], start: Any, capacity: int | None
    ) -> Caches:
        sources = tuple(block.cross_attention.keys_and_values(states) for block in self.layers)
        caches = tuple(
            None
            if capacity is None
            else block.attention.start(len(states), min(capacity, FIRST_CAPACITY), sources[0][0])
            for block in self.layers
        )
        return 0, caches, Shared((sources, mask))

    def still(self, state: Caches, room: Room) -> Caches:
        caches, shared = state[1], state[2]
        assert isinstance(shared, Shared), "what stays already stays"
        count = torch.zeros(1, dtype=torch.int64, device=shared.entries[1].device)
        followed = Followed(count, count.new_zeros(room.n_rows, room.n_positions, dtype=torch.int32))
        stays: list[KeysAndValues | None] = []
        for cache in caches:
            assert cache is not None, "a state for one call is not gone on from"
            _, N, _, K = cache[0].shape
            keys, values = (part.new_zeros(room.n_rows, N, room.n_positions, K) for part in cache[:2])
            stays.append((keys, values, followed))
        return count, tuple(stays), still_source(shared, room)

    def fill(self, still: Caches, state: Caches) -> None:
        (n, caches, shared), where = state, _table(still)
        for here, new in zip(still[1], caches, strict=True):
            assert here is not None, "memory has places for all layers"
            assert new is not None, "a state for one call is not gone on from"
            put(here[0], new[0])
            put(here[1], new[1])
        where.n.fill_(n)
        where.where.copy_(where.own_rows())
        put_source(_pointing(still), shared)

    def follow(self, still: Caches, rows: Int[Tensor, " R"]) -> None:
        n, where = table = _table(still)
        followed_rows(where, rows)
        where.index_copy_(1, n, table.own_rows()[:, :1])
        followed_rows(_pointing(still).of, rows)

    def flops(self, n_source: int, n_target: int) -> int:
        return sum(block.flops(n_source, n_target) for block in self.layers)


def _table(still: Caches) -> Followed:
    """Which row each position of each row's past lies in: one table, for all layers."""
    first = still[1][0]
    assert first is not None, "memory has places for all layers"
    assert isinstance(first[2], Followed), "memory has a table"
    return first[2]


def _pointing(still: Caches) -> Pointing:
    assert isinstance(still[2], Pointing), "rows of memory point at their sources"
    return still[2]
