"""Linear layers and norms for one new position, with what stands before and after them in a Transformer block."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.gelu import ACTIVATIONS

MAX_ROWS = 4  # beyond, matrix products read W once for all rows


def step_linear(
    x: Float[Tensor, "B I"],
    W: Float[Tensor, "O I"],
    b: Float[Tensor, " O"] | None = None,
    norm: nn.LayerNorm | None = None,
    activation: str | None = None,
    residual: Float[Tensor, "B O"] | None = None,
) -> Float[Tensor, "B O"]:
    """y = r + φ(W norm(x) + b), where each of norm, φ, b and r may be missing. No gradient is kept.

    For a text or two on a GPU such a product is a matter of reading W, and a kernel of its own for each of norm, φ and
    sum costs as much time as the product: here they are one.
    """
    if is_for_one_kernel(x, W):
        from regard.kernels.step_linear_cuda import fused_step_linear  # Triton is only there on a GPU

        return fused_step_linear(x, W, b, norm, activation, residual)
    return plain_step_linear(x, W, b, norm, activation, residual)


def plain_step_linear(
    x: Tensor, W: Tensor, b: Tensor | None, norm: nn.LayerNorm | None, activation: str | None, residual: Tensor | None
) -> Tensor:
    """`step_linear` by torch's own operations."""
    y = functional.linear(x if norm is None else norm(x), W, b)
    y = y if activation is None else ACTIVATIONS[activation](y)
    return y if residual is None else residual + y


def is_for_one_kernel(x: Tensor, W: Tensor) -> bool:
    """Whether `step_linear` is one kernel: for a few rows on a GPU, without a gradient."""
    is_fit = x.device.type == "cuda" and x.dtype == W.dtype != torch.float64 and not torch.is_grad_enabled()
    return is_fit and len(x) <= MAX_ROWS and x.shape[1] % 16 == 0


def step_norm(
    x: Float[Tensor, "B D"], norm: nn.LayerNorm, y: Float[Tensor, "B D"] | None = None
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    """x' = x + y and norm(x'), where y may be missing. Keeps no gradient.

    On a GPU it is one kernel of 2 µs instead of two of 5 together.
    """
    if x.device.type == "cuda" and x.dtype != torch.float64 and not torch.is_grad_enabled():
        from regard.kernels.step_linear_cuda import fused_step_norm  # Triton is only there on a GPU

        return fused_step_norm(x, norm, y)
    return plain_step_norm(x, norm, y)


def plain_step_norm(x: Tensor, norm: nn.LayerNorm, y: Tensor | None) -> tuple[Tensor, Tensor]:
    """`step_norm` by torch's own operations."""
    x = x if y is None else x + y
    return x, norm(x)
