"""`step_attention` and `step_cross_attention` as Triton kernels: one program a row and head. Imported on a GPU only."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.device import has_dependent_launch

LOWEST = -1e30  # and not -inf, so that an entry with nothing in it makes no NaN
FEW_PROGRAMS = 132  # as many as an H200 has processors: each then works with more threads on more positions


@triton.jit
def _step(
    q_ptr, k_ptr, v_ptr, q_row, q_head, keys_ptr, values_ptr, cache_row, cache_head, n_ptr, y_ptr, scale,
    where_ptr, where_row,
    n_heads: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr, IS_DEPENDENT: tl.constexpr, HAS_TABLE: tl.constexpr,
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
    if IS_DEPENDENT:
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
    is_dependent = has_dependent_launch(q.device)
    n_warps, block = _shape(B * N, K)
    _step[(B * N,)](
        q, k, v, q.stride(0), q.stride(1), keys, values, keys.stride(0), keys.stride(1), n, y, 1 / math.sqrt(K),
        where, 0 if where is None else where.stride(0),
        n_heads=N, K=K, BLOCK=block, IS_DEPENDENT=is_dependent, HAS_TABLE=where is not None, num_warps=n_warps,
        **({"launch_pdl": True} if is_dependent else {}),
    )  # fmt: skip
    return y


def _shape(n_programs: int, K: int) -> tuple[int, int]:
    """Warps of a program and positions at a time: where programs are few, each has more under way at once."""
    n_warps = 8 if n_programs <= FEW_PROGRAMS else 2
    return n_warps, max(16, n_warps * 32 * 64 // K)  # 64 numbers of the keys in a thread's registers


@triton.jit
def _cross(
    q_ptr, q_row, q_head, keys_ptr, values_ptr, entry_stride, head_stride, position_stride, mask_ptr, of_ptr, y_ptr,
    scale, S, n_heads: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """Softmax as it goes (Milakov & Gimelshein 2018), BLOCK positions at a time."""
    row, head = tl.program_id(0) // n_heads, tl.program_id(0) % n_heads
    entry = tl.load(of_ptr + row).to(tl.int64)
    channels, lanes = tl.arange(0, K), tl.arange(0, BLOCK)
    first = entry * entry_stride + head.to(tl.int64) * head_stride
    q = tl.load(q_ptr + row.to(tl.int64) * q_row + head * q_head + channels).to(tl.float32) * scale
    top = tl.full([], LOWEST, tl.float32)
    total = tl.zeros([], tl.float32)
    y = tl.zeros([K], tl.float32)
    for start in range(0, S, BLOCK):
        at = start + lanes
        is_there = tl.load(mask_ptr + entry * S + at, mask=at < S, other=0) != 0
        where = first + at[:, None].to(tl.int64) * position_stride + channels[None, :]
        keys = tl.load(keys_ptr + where, mask=is_there[:, None], other=0.0).to(tl.float32)
        values = tl.load(values_ptr + where, mask=is_there[:, None], other=0.0).to(tl.float32)
        scores = tl.where(is_there, tl.sum(keys * q[None, :], 1), LOWEST)
        new_top = tl.maximum(top, tl.max(scores, 0))
        weights, shrunk = tl.where(is_there, tl.exp(scores - new_top), 0.0), tl.exp(top - new_top)
        total = total * shrunk + tl.sum(weights, 0)
        y = y * shrunk + tl.sum(weights[:, None] * values, 0)
        top = new_top
    y = y / tl.maximum(total, 1e-30)
    tl.store(y_ptr + tl.program_id(0).to(tl.int64) * K + channels, y.to(y_ptr.dtype.element_ty))


def fused_step_cross_attention(q: Tensor, k: Tensor, v: Tensor, is_there: Tensor, of: Tensor) -> Tensor:
    R, N, _, K = q.shape
    S = k.shape[2]
    assert k.stride() == v.stride(), "keys and values are laid out alike"
    assert k.stride(3) == q.stride(3) == 1, "the channels of a head lie side by side"
    assert is_there.is_contiguous(), "the mask is read row by row"
    y = torch.empty(R, N, 1, K, dtype=q.dtype, device=q.device)
    block = min(max(16, triton.next_power_of_2(S)), max(16, 4096 // K))  # 32 numbers of the keys a thread
    _cross[(R * N,)](
        q, q.stride(0), q.stride(1), k, v, k.stride(0), k.stride(1), k.stride(2), is_there, of, y, 1 / math.sqrt(K), S,
        n_heads=N, K=K, BLOCK=block, LOWEST=LOWEST, num_warps=4,
    )  # fmt: skip
    return y
