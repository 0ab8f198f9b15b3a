"""Causal self-attention, in layers: every position looks at itself and at its past, or at the last few of it."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import RegardError
from regard.kernels.device import lower_precision
from regard.layers.attention import MultiHeadAttention
from regard.layers.bilinear_heads import BilinearHeads
from regard.layers.positions import positions
from regard.layers.taps import Taps, keep, scope
from regard.mixers.config import AttentionConfig, RestrictedConfig
from regard.mixers.mixer import State


class Caches(NamedTuple):
    """How many positions came before, a number or a tensor (1,) on the device; and what every layer keeps of them."""

    n: int | Tensor
    layers: tuple[State | None, ...]


Attention = MultiHeadAttention | BilinearHeads
"""What a block attends with; its cache is its own affair."""


def build_norm(d_model: int, without: Sequence[str]) -> nn.Module:
    """A layer norm, or nothing where it is left out."""
    return nn.Identity() if "norm" in without else nn.LayerNorm(d_model)


class AttentionBlock(nn.Module):
    """x + attention(norm(x)): attention, its sum and its norm, with no feed-forward layer.

    `without` may name the norm or the residual, x, as what is left out.
    """

    def __init__(self, d_model: int, attention: Attention, p_dropout: float, without: Sequence[str] = ()) -> None:
        super().__init__()
        self.norm = build_norm(d_model, without)
        self.attention = attention
        self.dropout = nn.Dropout(p_dropout)
        self.has_residual = "residual" not in without

    def forward(
        self, x: Float[Tensor, "B T D"], cache: State | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None, None]:
        """x and the cache after it; as a block that looks at no source, no weights on one."""
        y, cache = self.attention(self.norm(x), cache, taps)
        x = x + self.dropout(y) if self.has_residual else self.dropout(y)
        return x if taps is None else taps.keep("residual", x), cache, None

    def step(self, x: Float[Tensor, "B 1 D"], cache: State) -> Float[Tensor, "B 1 D"]:
        """Add one position to a static cache."""
        return self(x, cache)[0]  # type: ignore[no-any-return]

    def flops_per_token(self, n_context: int) -> int:
        return self.attention.flops_per_token(n_context)


class AttentionStack(nn.Module):
    """x^0 = positions(x),  x^l = block_l(x^{l-1}),  y = norm(x^L).

    The blocks are of one kind: `AttentionBlock`s make the self-attention models, `TransformerBlock`s the Transformer.
    Any other would need an `attention` with a cache, and `forward`, `step` and `flops_per_token` as these have.
    """

    carries_state = False

    def __init__(
        self, order: nn.Module, blocks: Sequence[nn.Module], norm: nn.Module, p_dropout: float, max_context: int
    ) -> None:
        super().__init__()
        self.positions, self.norm = order, norm
        self.layers: Sequence[Any] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.dropout = nn.Dropout(p_dropout)
        self.max_context: int | None = max_context

    def forward(
        self, x: Float[Tensor, "B T D"], state: Caches | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Caches | None]:
        n_before, caches = Caches(0, (None,) * len(self.layers)) if state is None else state
        x = lower_precision(self.dropout(self.positions(x, n_before, taps)))
        after: list[State | None] = []
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            x, cache, _ = block(x, caches[index], inner)
            x = keep(inner, "hidden", x)
            after.append(cache)
        n_after = n_before + (0 if state is None else x.shape[1])
        return lower_precision(self.norm(x)), None if state is None else Caches(n_after, tuple(after))

    def read_layers(self, x: Float[Tensor, "B T D"], taps: Taps | None = None) -> tuple[Float[Tensor, "B T D"], ...]:
        """x^0, with its positions, up to x^{L-1}, then y."""
        if self.sees_ahead:
            raise RegardError(
                "A model that was trained without its mask cannot read texts for a task: it would look at the padding "
                "behind them. Name a run whose model.without has no mask."
            )
        outputs = [lower_precision(self.dropout(self.positions(x, 0, taps)))]
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            outputs.append(keep(inner, "hidden", block(outputs[-1], None, inner)[0]))
        return *outputs[:-1], lower_precision(self.norm(outputs[-1]))

    @property
    def sees_ahead(self) -> bool:
        """Whether a whole text is read without the mask: every position then sees those after it."""
        return any(isinstance(b.attention, MultiHeadAttention) and not b.attention.is_causal for b in self.layers)

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    def step(self, x: Float[Tensor, "B 1 D"], state: Caches) -> tuple[Float[Tensor, "B 1 D"], Caches]:
        x = lower_precision(self.positions(x, state.n))
        for block, cache in zip(self.layers, state.layers, strict=True):
            x = block.step(x, cache)
        return lower_precision(self.norm(x)), state._replace(n=state.n + 1)

    @property
    def has_static_step(self) -> bool:
        attentions = [block.attention for block in self.layers]
        return all(isinstance(each, MultiHeadAttention) and each.n_window is None for each in attentions)

    def start(self, B: int, capacity: int, like: Tensor) -> Caches:
        return Caches(0, tuple(block.attention.start(B, capacity, like) for block in self.layers))

    def flops_per_token(self, n_context: int) -> int:
        return sum(block.flops_per_token(n_context) for block in self.layers)


def initialise(stack: AttentionStack, n_sums: int, std: float | None = 0.02) -> AttentionStack:
    """Start every matrix at N(0, std²), and at std²/n what goes into the n sums, so that their total stays of size one.

    GPT-2's std is 0.02. None: one over the root of the numbers that a matrix reads, which suits attention without
    feed-forward layers better: at width 128, 2.09 bits per byte against 2.16 (docs/defaults.md).
    """
    for name, parameter in stack.named_parameters():
        if parameter.dim() == 2 and not name.startswith("positions"):
            spread = parameter.shape[1] ** -0.5 if std is None else std
            nn.init.normal_(parameter, std=spread / math.sqrt(n_sums) if name.endswith("out.weight") else spread)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return stack


def self_attention(config: AttentionConfig | RestrictedConfig) -> AttentionStack:
    """Stack attention layers, with a window or without.

    What a layer with a window r does not see it can hear of: through L layers news travels L (r-1) positions.
    """
    D, N, p = config.d_model, config.n_heads, config.p_dropout
    without = () if isinstance(config, RestrictedConfig) else config.without

    def attention() -> Attention:
        if isinstance(config, RestrictedConfig):
            return MultiHeadAttention(D, N, p, config.n_window)
        return build_attention(D, N, p, without) if config.heads == "concatenated" else BilinearHeads(D, N, p)

    stack = AttentionStack(
        order=positions(config.positions, config.max_context, D),
        blocks=[AttentionBlock(D, attention(), p, without) for _ in range(config.n_layers)],
        norm=build_norm(D, without),
        p_dropout=p,
        max_context=config.max_context,
    )
    return initialise(stack, n_sums=1 if "residual" in without else config.n_layers, std=None)


def build_attention(d_model: int, n_heads: int, p_dropout: float, without: Sequence[str]) -> MultiHeadAttention:
    """Heads side by side, without the mask, the values or the scale where they are left out."""
    parts = {"is_causal": "mask", "has_values": "values", "is_scaled": "scale"}
    return MultiHeadAttention(d_model, n_heads, p_dropout, **{key: part not in without for key, part in parts.items()})
