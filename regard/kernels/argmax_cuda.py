"""`argmax` as one Triton kernel: one program a row. Imported on a GPU only."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.device import has_dependent_launch

BLOCK = 8192  # logits at a time


@triton.jit
def _argmax(logits_ptr, stride, V, index_ptr, BLOCK: tl.constexpr, IS_DEPENDENT: tl.constexpr):
    """Each lane keeps its largest and where it was; they meet at the end."""
    if IS_DEPENDENT:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    where = lanes
    for start in range(0, V, BLOCK):
        here = start + lanes
        x = tl.load(logits_ptr + row * stride + here, mask=here < V, other=-float("inf")).to(tl.float32)
        where = tl.where(x > top, here, where)
        top = tl.maximum(x, top)
    highest = tl.max(top, 0)
    first = tl.min(tl.where(top == highest, where, V - 1), 0)  # where nothing is a number, the last token
    tl.store(index_ptr + row, first.to(tl.int64))


def fused_argmax(logits: Tensor) -> Tensor:
    B, V = logits.shape
    index = torch.empty(B, dtype=torch.int64, device=logits.device)
    is_dependent = has_dependent_launch(logits.device)
    _argmax[(B,)](
        logits, logits.stride(0), V, index, BLOCK=BLOCK, IS_DEPENDENT=is_dependent, num_warps=32,
        **({"launch_pdl": True} if is_dependent else {}),
    )  # fmt: skip
    return index
