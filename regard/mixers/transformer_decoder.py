"""The Transformer decoder that looks at a source."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.attention import KeysAndValues, MultiHeadAttention, with_room
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.feed_forward import FeedForward
from regard.layers.low_precision import lowered
from regard.layers.positions import positions
from regard.layers.record import Record
from regard.layers.shared_rows import Shared
from regard.mixers.config import TransformerConfig
from regard.mixers.decoder import Weights

Caches = tuple[int, tuple[KeysAndValues | None, ...], Shared]
"""How many positions came before; every layer's keys and values of these (None: there will be no later call); what all
targets of a source share: every layer's keys and values of the source, and which of its positions are there."""
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
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R N T S"] | None, KeysAndValues | None]:
        if self.is_pre_norm:
            y, cache = self.attention(self.norm_attention(x), cache, record)
            x = x + self.dropout(y)
            y, A = self.cross_attention(self.norm_cross(x), source, mask, record, wants_weights)
            x = x + self.dropout(y)
            return x + self.dropout(self.feed_forward(self.norm_feed_forward(x))), A, cache
        y, cache = self.attention(x, cache, record)
        x = self.norm_attention(x + self.dropout(y))
        y, A = self.cross_attention(x, source, mask, record, wants_weights)
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
        T, A = x.shape[1], None
        x = lowered(self.dropout(self.positions(x, n_before)))
        after: list[KeysAndValues | None] = []
        for index, block in enumerate(self.layers):
            scope = None if record is None else record.scope(f"layers.{index}")
            wants_weights = self.gives_weights and index == len(self.layers) - 1
            before = caches[index]
            room = None if before is None else with_room(before, T)
            x, A, cache = block(x, room, sources[index], mask, scope, wants_weights)
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

    def flops(self, n_source: int, n_target: int) -> int:
        return sum(block.flops(n_source, n_target) for block in self.layers)
