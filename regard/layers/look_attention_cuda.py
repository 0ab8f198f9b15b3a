"""`look_attention` as one Triton kernel: one program a row and head. Imported on a GPU only."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

LOWEST = -1e30  # and not -inf, so that an entry with nothing in it makes no NaN


@triton.jit
def _look(
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


def fused_look_attention(q: Tensor, k: Tensor, v: Tensor, is_there: Tensor, of: Tensor) -> Tensor:
    R, N, _, K = q.shape
    S = k.shape[2]
    assert k.stride() == v.stride(), "keys and values are laid out alike"
    assert k.stride(3) == q.stride(3) == 1, "the channels of a head lie side by side"
    assert is_there.is_contiguous(), "the mask is read row by row"
    y = torch.empty(R, N, 1, K, dtype=q.dtype, device=q.device)
    block = min(max(16, triton.next_power_of_2(S)), max(16, 4096 // K))  # 32 numbers of the keys a thread
    _look[(R * N,)](
        q, q.stride(0), q.stride(1), k, v, k.stride(0), k.stride(1), k.stride(2), is_there, of, y, 1 / math.sqrt(K), S,
        n_heads=N, K=K, BLOCK=block, LOWEST=LOWEST, num_warps=4,
    )  # fmt: skip
    return y
