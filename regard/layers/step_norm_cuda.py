"""`step_norm` as one Triton kernel: a program a row. Imported on a GPU only."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from regard.layers.early_launch_cuda import launches_early


@triton.jit
def _norm(
    x_ptr, y_ptr, gain_ptr, shift_ptr, sum_ptr, h_ptr, D, epsilon,
    HAS_Y: tl.constexpr, BLOCK: tl.constexpr, IS_EARLY: tl.constexpr,
):  # fmt: skip
    """The sum is rounded to the model's type before it is normed, as the plain path does."""
    row = tl.program_id(0).to(tl.int64) * D
    i = tl.arange(0, BLOCK)
    gain = tl.load(gain_ptr + i, mask=i < D, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + i, mask=i < D, other=0.0).to(tl.float32)
    if IS_EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    dtype = h_ptr.dtype.element_ty
    x = tl.load(x_ptr + row + i, mask=i < D, other=0.0).to(tl.float32)
    if HAS_Y:
        x = (x + tl.load(y_ptr + row + i, mask=i < D, other=0.0).to(tl.float32)).to(dtype)
        tl.store(sum_ptr + row + i, x, mask=i < D)
        x = x.to(tl.float32)
    mean = tl.sum(x, 0) / D
    apart = tl.where(i < D, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, 0) / D + epsilon)
    tl.store(h_ptr + row + i, (apart * scale * gain + shift).to(dtype), mask=i < D)


def fused_step_norm(x: Tensor, norm: nn.LayerNorm, y: Tensor | None) -> tuple[Tensor, Tensor]:
    x, (B, D) = x.contiguous(), x.shape
    y = None if y is None else y.contiguous()
    h = torch.empty_like(x)
    total = x if y is None else torch.empty_like(x)
    is_early = launches_early(x.device)
    _norm[(B,)](
        x, x if y is None else y, norm.weight, norm.bias, total, h, D, norm.eps,
        HAS_Y=y is not None, BLOCK=triton.next_power_of_2(D), IS_EARLY=is_early, num_warps=4,
        **({"launch_pdl": True} if is_early else {}),
    )  # fmt: skip
    return total, h
