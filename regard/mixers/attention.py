"""Causal self-attention, in layers: every position looks at itself and at its past."""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.attention import MultiHeadAttention
from regard.layers.bilinear_heads import BilinearHeads
from regard.layers.low_precision import lowered
from regard.layers.positions import positions
from regard.layers.record import Record
from regard.mixers.config import AttentionConfig
from regard.mixers.mixer import State

Caches = tuple[int | Tensor, tuple[State, ...]]
"""How many positions came before, and what every layer keeps of them."""


@runtime_checkable
class Attention(Protocol):
    """What a block attends with; its cache is its own affair."""

    def __call__(
        self, x: Float[Tensor, "B T D"], cache: State | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None]: ...

    def start(self, B: int, capacity: int, like: Tensor) -> State: ...

    def flops_per_token(self, n_context: int) -> int: ...


class AttentionBlock(nn.Module):
    """x + attention(norm(x)): attention, its sum and its norm, with no feed-forward layer."""

    def __init__(self, d_model: int, attention: Attention, p_dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.attention = attention
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], cache: State | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        y, cache = self.attention(self.norm(x), cache, record)
        return x + self.dropout(y), cache

    def flops_per_token(self, n_context: int) -> int:
        return self.attention.flops_per_token(n_context)


@runtime_checkable
class Block(Protocol):
    """What an AttentionStack stacks."""

    attention: Attention

    def __call__(
        self, x: Float[Tensor, "B T D"], cache: State | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None]: ...

    def flops_per_token(self, n_context: int) -> int: ...


class AttentionStack(nn.Module):
    """x^0 = positions(x),  x^l = block_l(x^{l-1}),  y = norm(x^L).

    The blocks are of one kind: `AttentionBlock`s make the self-attention models, `TransformerBlock`s the Transformer.
    """

    carries_state = False

    def __init__(
        self, order: nn.Module, blocks: Sequence[nn.Module], norm: nn.Module, p_dropout: float, max_context: int
    ) -> None:
        super().__init__()
        self.positions, self.norm = order, norm
        self.layers: Sequence[Block] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.dropout = nn.Dropout(p_dropout)
        self.max_context: int | None = max_context

    def forward(
        self, x: Float[Tensor, "B T D"], state: Caches | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], Caches | None]:
        T = x.shape[1]
        n_before, caches = (0, (None,) * len(self.layers)) if state is None else state
        x = lowered(self.dropout(self.positions(x, n_before)))
        after: list[State | None] = []
        for index, block in enumerate(self.layers):
            scope = None if record is None else record.scope(f"layers.{index}")
            x, cache = block(x, caches[index], scope)
            if scope is not None:
                scope.keep("hidden", x)
            after.append(cache)
        return lowered(self.norm(x)), None if state is None else (n_before + T, tuple(after))

    def start(self, B: int, capacity: int, like: Tensor) -> Caches:
        return 0, tuple(block.attention.start(B, capacity, like) for block in self.layers)

    def flops_per_token(self, n_context: int) -> int:
        return sum(block.flops_per_token(n_context) for block in self.layers)


def initialise(stack: AttentionStack, n_sums: int) -> AttentionStack:
    """GPT-2's start: N(0, 0.02²), and 0.02²/n for what goes into the n sums, so that their total stays of size one."""
    for name, parameter in stack.named_parameters():
        if name.endswith("out.weight"):
            nn.init.normal_(parameter, std=0.02 / math.sqrt(n_sums))
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return stack


def self_attention(config: AttentionConfig) -> AttentionStack:
    D, p = config.d_model, config.p_dropout
    kind = MultiHeadAttention if config.heads == "concatenated" else BilinearHeads
    stack = AttentionStack(
        order=positions(config.positions, config.max_context, D),
        blocks=[AttentionBlock(D, kind(D, config.n_heads, p), p) for _ in range(config.n_layers)],
        norm=nn.LayerNorm(D),
        p_dropout=p,
        max_context=config.max_context,
    )
    return initialise(stack, n_sums=config.n_layers)
