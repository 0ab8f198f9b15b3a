"""The Transformer decoder that looks at a source."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.device import lower_precision
from regard.kernels.kv_cache import AnyKVCache
from regard.kernels.state import Pointing, Shared
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.positions import positions
from regard.layers.taps import Taps, keep, scope
from regard.mixers.config import TransformerConfig
from regard.mixers.mixer import Weights
from regard.mixers.transformer import TransformerBlock

FIRST_CAPACITY = 16
"""Positions that a cache has room for before it grows."""


class Caches(NamedTuple):
    """What is known before a step."""

    n: int | Tensor
    """How many positions came before; a tensor (1,) where the state is to stay in its place."""
    layers: tuple[AnyKVCache | None, ...]
    """Every layer's keys and values of these; None: there will be no later call."""
    source: Shared | Pointing
    """What all targets of a source share: every layer's keys and values of it, and which of its positions are there."""


class TransformerDecoder(nn.Module):
    """x^0 = positions(x),  x^l = block_l(x^{l-1}, s),  y = norm(x^L) with norm before the sums, x^L with norm after.

    Its weights on the source are the mean over the heads of the last layer, where `gives_weights` asks for them.
    """

    def __init__(self, config: TransformerConfig, gives_weights: bool = False) -> None:
        super().__init__()
        D = config.d_model
        self.positions = positions(config.positions, config.max_context, D)
        blocks = [TransformerBlock(config, has_source=True) for _ in range(config.n_layers)]
        self.layers: Sequence[TransformerBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(D) if config.norm == "pre" else nn.Identity()
        self.dropout = nn.Dropout(config.p_dropout)
        self.max_context: int | None = config.max_context
        self.gives_weights = gives_weights

    def forward(
        self, x: Float[Tensor, "B T D"], state: Caches, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Weights | None, Caches]:
        sources, mask = state.source.entries
        T, A = x.shape[1], None
        x = lower_precision(self.dropout(self.positions(x, state.n, taps)))
        after: list[AnyKVCache | None] = []
        for index, (block, before) in enumerate(zip(self.layers, state.layers, strict=True)):
            inner = scope(taps, f"layers.{index}")
            cache = None if before is None else before.with_room(T)
            keys, values = sources[index]
            source = SourceKeysAndValues(keys, values, mask, state.source.of)
            wants_weights = self.gives_weights and index == len(self.layers) - 1
            x, cache, A = block(x, cache, inner, None, source, wants_weights)
            x = keep(inner, "hidden", x)
            after.append(cache)
        weights = A.mean(dim=1) if self.gives_weights and A is not None else None
        return lower_precision(self.norm(x)), weights, Caches(state.n + T, tuple(after), state.source)

    def start(
        self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], start: Any, capacity: int | None
    ) -> Caches:
        sources = tuple(cross.keys_and_values(states) for cross in self._cross_attentions())
        if capacity is None:
            return Caches(0, (None,) * len(self.layers), Shared((sources, mask)))
        room = len(states), min(capacity, FIRST_CAPACITY), sources[0][0]
        return Caches(0, tuple(block.attention.start(*room) for block in self.layers), Shared((sources, mask)))

    def _cross_attentions(self) -> list[CrossAttention]:
        return [block.cross_attention for block in self.layers if block.cross_attention is not None]

    def flops(self, n_source: int, n_target: int) -> int:
        own = n_target * sum(block.flops_per_token(n_target) for block in self.layers)
        return own + sum(cross.flops(n_source, n_target) for cross in self._cross_attentions())
