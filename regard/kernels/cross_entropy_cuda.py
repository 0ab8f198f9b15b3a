"""One chunk of the cross-entropy on a GPU: logits in, nats and the gradient out, in the logits' own memory.

    nats_n = m_n (log Σ_v exp z_nv - z_{n y_n}),     z_nv becomes m_n (exp(z_nv) / Σ_u exp z_nu - [v = y_n])

torch's own operations read and write the (chunk, V) logits seven times; this kernel reads them from memory once, again
from the cache, and writes them once. Imported on a GPU only.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096


@triton.jit
def _turn(z_ptr, stride, y_ptr, m_ptr, nats_ptr, V, width, LOG2_E: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    z_ptr += row * stride
    y = tl.load(y_ptr + row)
    m = tl.load(m_ptr + row).to(tl.float32)
    z_y = tl.load(z_ptr + y).to(tl.float32)
    # Loads go by the width of the rows, a multiple of 16, and not by V: they are then 16 bytes wide instead of 2.
    # Every lane keeps Σ 2^(z - the largest so far): one exponential a logit. Lanes that each keep a largest logit of
    # their own need two, and took a tenth longer.
    top = -1e30
    totals = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        v = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + v, mask=v < width, other=0.0).to(tl.float32) * LOG2_E
        z = tl.where(v < V, z, -float("inf"))
        new_top = tl.maximum(top, tl.max(z, 0))
        totals = totals * tl.exp2(top - new_top) + tl.exp2(z - new_top)
        top = new_top
    log_sum = top + tl.log2(tl.sum(totals, 0))
    tl.store(nats_ptr + row, (log_sum / LOG2_E - z_y) * m)
    for start in range(0, width, BLOCK):
        v = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + v, mask=v < width, other=0.0).to(tl.float32) * LOG2_E
        p = tl.where(v < V, tl.exp2(z - log_sum), 0.0)
        d = tl.where(v == y, p - 1.0, p) * m
        tl.store(z_ptr + v, d.to(z_ptr.dtype.element_ty), mask=v < width)


def nats_and_gradient(z: Tensor, y: Tensor, m: Tensor, nats: Tensor, vocab_size: int) -> None:
    """Turn the logits z (C, V and a few) into their gradient, zero for the few, and write the nats of every row."""
    _turn[(len(z),)](
        z, z.stride(0), y, m, nats, vocab_size, z.shape[1], LOG2_E=math.log2(math.e), BLOCK=BLOCK, num_warps=8
    )
