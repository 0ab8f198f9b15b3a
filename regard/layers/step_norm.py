"""A sum and the layer norm of it, for one new position of many texts.

x' = x + y,   h = norm(x')       (y may be missing)
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


def step_norm(
    x: Float[Tensor, "B D"], norm: nn.LayerNorm, y: Float[Tensor, "B D"] | None = None
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    """x' and h, by whatever is fastest: on a GPU one kernel of 2 µs instead of two of 5 together. Keeps no gradient."""
    if x.device.type == "cuda" and x.dtype != torch.float64 and not torch.is_grad_enabled():
        from regard.layers.step_norm_cuda import fused_step_norm

        return fused_step_norm(x, norm, y)
    return plain_step_norm(x, norm, y)


def plain_step_norm(
    x: Float[Tensor, "B D"], norm: nn.LayerNorm, y: Float[Tensor, "B D"] | None
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    x = x if y is None else x + y
    return x, norm(x)
