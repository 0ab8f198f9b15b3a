"""`likeliest` as one Triton kernel: one program a row. Imported on a GPU only."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.layers.early_launch_cuda import launches_early

BLOCK = 8192  # logits at a time


@triton.jit
def _likeliest(logits_ptr, stride, V, index_ptr, BLOCK: tl.constexpr, IS_EARLY: tl.constexpr):
    """Each lane keeps its largest and where it was; they meet at the end."""
    if IS_EARLY:
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


def fused_likeliest(logits: Tensor) -> Tensor:
    B, V = logits.shape
    index = torch.empty(B, dtype=torch.int64, device=logits.device)
    is_early = launches_early(logits.device)
    _likeliest[(B,)](
        logits, logits.stride(0), V, index, BLOCK=BLOCK, IS_EARLY=is_early, num_warps=32,
        **({"launch_pdl": True} if is_early else {}),
    )  # fmt: skip
    return index
