"""`step_attention` as one Triton kernel: one program a text and head. Imported on a GPU only."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.layers.early_launch_cuda import launches_early

FEW_PROGRAMS = 132  # as many as an H200 has processors: each then works with more threads on more positions


@triton.jit
def _step(
    q_ptr, k_ptr, v_ptr, q_row, q_head, keys_ptr, values_ptr, cache_row, cache_head, n_ptr, y_ptr, scale,
    where_ptr, where_row,
    n_heads: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr, IS_EARLY: tl.constexpr, HAS_TABLE: tl.constexpr,
):  # fmt: skip
    """Softmax as it goes (Milakov & Gimelshein 2018), in BLOCK lanes that meet only at the end.

    `top` is a lane's largest score so far, `total` its Σ exp(score - top). The first block of the past is asked for
    before waiting for q, k and v: it was written by earlier steps. A table of rows is written in this one, but two
    kernels earlier, of which the second began when the first was over.
    """
    row, head = tl.program_id(0) // n_heads, tl.program_id(0) % n_heads
    here = row.to(tl.int64) * q_row + head * q_head
    there = row.to(tl.int64) * cache_row + head.to(tl.int64) * cache_head
    channels, lanes = tl.arange(0, K), tl.arange(0, BLOCK)
    n = tl.load(n_ptr)
    if HAS_TABLE:
        table = where_ptr + row.to(tl.int64) * where_row
        rows = tl.load(table + lanes, mask=lanes < n, other=0).to(tl.int64)
        first = rows * cache_row + head.to(tl.int64) * cache_head
        where = first[:, None] + lanes[:, None] * K + channels[None, :]
    else:
        where = there + lanes[:, None] * K + channels[None, :]
    keys = tl.load(keys_ptr + where, mask=(lanes < n)[:, None], other=0.0)
    values = tl.load(values_ptr + where, mask=(lanes < n)[:, None], other=0.0)
    if IS_EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    q = tl.load(q_ptr + here + channels).to(tl.float32) * scale
    k = tl.load(k_ptr + here + channels)
    v = tl.load(v_ptr + here + channels)
    tl.store(keys_ptr + there + n * K + channels, k)
    tl.store(values_ptr + there + n * K + channels, v)
    # The new position is in registers; what was just stored need not be read back.
    own = tl.sum(q * k.to(tl.float32), 0)
    scores = tl.where(lanes < n, tl.sum(keys.to(tl.float32) * q[None, :], 1), -float("inf"))
    top = tl.maximum(scores, own)  # finite in every lane
    total = tl.exp(scores - top)
    y = total[:, None] * values.to(tl.float32)
    for start in range(BLOCK, n, BLOCK):
        is_past = start + lanes < n
        if HAS_TABLE:
            rows = tl.load(table + start + lanes, mask=is_past, other=0).to(tl.int64)
            first = rows * cache_row + head.to(tl.int64) * cache_head
            where = first[:, None] + lanes[:, None] * K + channels[None, :]
        keys = tl.load(keys_ptr + where + start * K, mask=is_past[:, None], other=0.0)
        values = tl.load(values_ptr + where + start * K, mask=is_past[:, None], other=0.0)
        scores = tl.where(is_past, tl.sum(keys.to(tl.float32) * q[None, :], 1), -float("inf"))
        new_top = tl.maximum(top, scores)
        weights, shrunk = tl.exp(scores - new_top), tl.exp(top - new_top)
        total = total * shrunk + weights
        y = y * shrunk[:, None] + weights[:, None] * values.to(tl.float32)
        top = new_top
    highest = tl.max(top, 0)
    shrunk = tl.exp(top - highest)
    own = tl.exp(own - highest)
    total = tl.sum(total * shrunk, 0) + own
    y = tl.sum(y * shrunk[:, None], 0) + own * v.to(tl.float32)
    tl.store(y_ptr + tl.program_id(0).to(tl.int64) * K + channels, (y / total).to(y_ptr.dtype.element_ty))


def fused_step_attention(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, n: Tensor, where: Tensor | None = None
) -> Tensor:
    B, N, _, K = q.shape
    assert q.stride() == k.stride() == v.stride(), "q, k and v are thirds of one product"
    assert keys.is_contiguous(), "the cache is laid out head by head"
    assert values.is_contiguous(), "the cache is laid out head by head"
    y = torch.empty(B, N, 1, K, dtype=q.dtype, device=q.device)
    is_early = launches_early(q.device)
    n_warps, block = shape(B * N, K)
    _step[(B * N,)](
        q, k, v, q.stride(0), q.stride(1), keys, values, keys.stride(0), keys.stride(1), n, y, 1 / math.sqrt(K),
        where, 0 if where is None else where.stride(0),
        n_heads=N, K=K, BLOCK=block, IS_EARLY=is_early, HAS_TABLE=where is not None, num_warps=n_warps,
        **({"launch_pdl": True} if is_early else {}),
    )  # fmt: skip
    return y


def shape(n_programs: int, K: int) -> tuple[int, int]:
    """Warps of a program and positions at a time: where programs are few, each has more under way at once."""
    n_warps = 8 if n_programs <= FEW_PROGRAMS else 2
    return n_warps, max(16, n_warps * 32 * 64 // K)  # 64 numbers of the keys in a thread's registers
