"""A linear layer for one new position, with what stands before and after it in a Transformer block.

    y = r + φ(W norm(x) + b),      each of norm, φ, b and r may be missing

For a text or two on a GPU such a product is a matter of reading W, and a kernel of its own for each of norm, φ and sum
costs as much time as the product: here they are one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.feed_forward import ACTIVATIONS

MAX_ROWS = 4  # beyond, matrix products read W once for all rows


def step_linear(
    x: Float[Tensor, "B I"],
    W: Float[Tensor, "O I"],
    b: Float[Tensor, " O"] | None = None,
    norm: nn.LayerNorm | None = None,
    activation: str | None = None,
    residual: Float[Tensor, "B O"] | None = None,
) -> Float[Tensor, "B O"]:
    """y, by whatever is fastest. No gradient is kept."""
    if is_for_one_kernel(x, W):
        from regard.layers.step_linear_cuda import fused_step_linear

        return fused_step_linear(x, W, b, norm, activation, residual)
    return plain_step_linear(x, W, b, norm, activation, residual)


def plain_step_linear(
    x: Float[Tensor, "B I"],
    W: Float[Tensor, "O I"],
    b: Float[Tensor, " O"] | None,
    norm: nn.LayerNorm | None,
    activation: str | None,
    residual: Float[Tensor, "B O"] | None,
) -> Float[Tensor, "B O"]:
    y = functional.linear(x if norm is None else norm(x), W, b)
    y = y if activation is None else ACTIVATIONS[activation](y)
    return y if residual is None else residual + y


def is_for_one_kernel(x: Tensor, W: Tensor) -> bool:
    is_fit = x.device.type == "cuda" and x.dtype == W.dtype != torch.float64 and not torch.is_grad_enabled()
    return is_fit and len(x) <= MAX_ROWS and x.shape[1] % 16 == 0
