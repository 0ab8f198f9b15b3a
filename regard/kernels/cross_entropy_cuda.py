"""One chunk of the cross-entropy on a GPU: logits in, nats and the gradient out, in the logits' own memory.

    nats_n = m_n (log Σ_v exp z_nv - z_{n y_n}),     z_nv becomes m_n (exp(z_nv) / Σ_u exp z_nu - [v = y_n])

torch's own operations read and write the (chunk, V) logits seven times; this kernel reads them from memory once, again
from the cache, and writes them once. Imported on a GPU only.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096


@triton.jit
def _turn(z_ptr, stride, y_ptr, m_ptr, nats_ptr, V, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    z_ptr += row * stride
    y = tl.load(y_ptr + row)
    m = tl.load(m_ptr + row).to(tl.float32)
    z_y = tl.load(z_ptr + y).to(tl.float32)
    # Loads go by the width of the rows, a multiple of 16, and not by V: they are then 16 bytes wide instead of 2.
    # Every lane keeps the largest of its own logits and Σ exp(z - largest); the lanes meet once, at the end. Meeting at
    # each block took a tenth longer.
    tops = tl.full([BLOCK], -1e30, tl.float32)
    totals = tl.zeros([BLOCK], tl.float32)
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + v, mask=v < width, other=0.0).to(tl.float32)
        z = tl.where(v < V, z, -float("inf"))
        new_tops = tl.maximum(tops, z)
        totals = totals * tl.exp(tops - new_tops) + tl.exp(z - new_tops)
        tops = new_tops
    top = tl.max(tops, 0)
    log_sum = top + tl.log(tl.sum(totals * tl.exp(tops - top), 0))
    tl.store(nats_ptr + row, (log_sum - z_y) * m)
    for start in range(0, V, BLOCK):
        v = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + v, mask=v < width, other=0.0).to(tl.float32)
        z = tl.where(v < V, z, -float("inf"))
        d = tl.where(v == y, tl.exp(z - log_sum) - 1.0, tl.exp(z - log_sum)) * m
        tl.store(z_ptr + v, d.to(z_ptr.dtype.element_ty), mask=v < width)


def nats_and_gradient(z: Tensor, y: Tensor, m: Tensor, nats: Tensor, vocab_size: int) -> None:
    """Turn the logits z (C, V and a few) into their gradient, zero for the few, and write the nats of every row."""
    _turn[(len(z),)](z, z.stride(0), y, m, nats, vocab_size, z.shape[1], BLOCK=BLOCK, num_warps=8)
