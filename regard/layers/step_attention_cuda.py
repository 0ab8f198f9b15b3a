"""`step_attention` as one Triton kernel: one program a text and head. Imported on a GPU only."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 128  # positions of the past at a time


@triton.jit
def _step(
    q_ptr, k_ptr, v_ptr, q_row, q_head, keys_ptr, values_ptr, cache_row, cache_head, n_ptr, y_ptr, scale,
    n_heads: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Softmax as it goes (Milakov & Gimelshein 2018): `top` is the largest score so far, `total` Σ exp(score - top)."""
    row, head = tl.program_id(0) // n_heads, tl.program_id(0) % n_heads
    here = row.to(tl.int64) * q_row + head * q_head
    there = row.to(tl.int64) * cache_row + head.to(tl.int64) * cache_head
    channels = tl.arange(0, K)
    q = tl.load(q_ptr + here + channels).to(tl.float32) * scale
    k = tl.load(k_ptr + here + channels)
    v = tl.load(v_ptr + here + channels)
    n = tl.load(n_ptr)
    tl.store(keys_ptr + there + n * K + channels, k)
    tl.store(values_ptr + there + n * K + channels, v)
    # The new position first: it is in registers, and what was just stored need not be read back.
    top = tl.sum(q * k.to(tl.float32), 0)
    total = 1.0
    y = v.to(tl.float32)
    for start in range(0, n, BLOCK):
        places = start + tl.arange(0, BLOCK)
        is_past = places < n
        where = places[:, None] * K + channels[None, :]
        keys = tl.load(keys_ptr + there + where, mask=is_past[:, None], other=0.0).to(tl.float32)
        scores = tl.where(is_past, tl.sum(keys * q[None, :], 1), -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, 0))
        weights = tl.exp(scores - new_top)
        values = tl.load(values_ptr + there + where, mask=is_past[:, None], other=0.0).to(tl.float32)
        shrunk = tl.exp(top - new_top)
        total = total * shrunk + tl.sum(weights, 0)
        y = y * shrunk + tl.sum(weights[:, None] * values, 0)
        top = new_top
    tl.store(y_ptr + tl.program_id(0).to(tl.int64) * K + channels, (y / total).to(y_ptr.dtype.element_ty))


def fused_step_attention(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, n: Tensor) -> Tensor:
    B, N, _, K = q.shape
    assert q.stride() == k.stride() == v.stride(), "q, k and v are thirds of one product"
    assert keys.is_contiguous(), "the cache is laid out head by head"
    assert values.is_contiguous(), "the cache is laid out head by head"
    y = torch.empty(B, N, 1, K, dtype=q.dtype, device=q.device)
    _step[(B * N,)](
        q, k, v, q.stride(0), q.stride(1), keys, values, keys.stride(0), keys.stride(1), n, y, 1 / math.sqrt(K),
        n_heads=N, K=K, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return y
