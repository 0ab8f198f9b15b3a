"""Attention of one new position: over its past, whose length is a number on the device, and over its source.

Nothing here depends on that number in Python, so a whole step of a model can be captured once as a CUDA graph and
replayed for every token: launching its kernels one by one takes several times longer than running them.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional


def step_attention(
    q: Float[Tensor, "B N 1 K"],
    k: Float[Tensor, "B N 1 K"],
    v: Float[Tensor, "B N 1 K"],
    keys: Float[Tensor, "B N C K"],
    values: Float[Tensor, "B N C K"],
    n: Int[Tensor, " one"],
    where: Int[Tensor, "B C"] | None = None,
) -> Float[Tensor, "B N 1 K"]:
    """Write k and v at position n of `keys` and `values`; return softmax(q · keys_{0..n} / √K) values_{0..n}.

    With a table `where`, position t of row b's past lies in row where[b, t] of the cache: rows that exchange their
    pasts, as hypotheses of a search do at every step, exchange numbers, and the keys and values stay. The table must
    say of position n that it lies in the row itself. Computed by whatever is fastest.
    """
    if has_kernel(q):
        from regard.kernels.step_attention_cuda import fused_step_attention  # Triton is only there on a GPU

        return fused_step_attention(q, k, v, keys, values, n, where)
    return plain_step_attention(q, k, v, keys, values, n, where)


def plain_step_attention(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, n: Tensor, where: Tensor | None = None
) -> Tensor:
    """`step_attention` by torch's own operations."""
    keys.index_copy_(2, n, k)
    values.index_copy_(2, n, v)
    if where is not None:
        t = torch.arange(keys.shape[2], device=q.device)
        keys, values = (x[where.long(), :, t].transpose(1, 2) for x in (keys, values))  # (B, N, C, K)
    is_past = torch.arange(keys.shape[2], device=q.device) <= n  # (C,)
    scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, N, 1, C)
    return scores.masked_fill(~is_past, -math.inf).softmax(dim=-1) @ values


def step_cross_attention(
    q: Float[Tensor, "R N 1 K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    is_there: Bool[Tensor, "B S"],
    of: Int[Tensor, " R"],
) -> Float[Tensor, "R N 1 K"]:
    """softmax(q_r · k_{of[r]} / √K) v_{of[r]} for each row r, over the positions of its entry that are there.

    The hypotheses of a search all look at the source that they translate. Its keys and values are kept once, and a row
    that comes to stand for another source has a number changed. Of an entry with nothing in it any numbers may come.
    Computed by whatever is fastest.
    """
    if has_kernel(q):
        from regard.kernels.step_attention_cuda import fused_step_cross_attention  # Triton is only there on a GPU

        return fused_step_cross_attention(q, k, v, is_there, of)
    return plain_step_cross_attention(q, k, v, is_there, of)


def plain_step_cross_attention(q: Tensor, k: Tensor, v: Tensor, is_there: Tensor, of: Tensor) -> Tensor:
    """`step_cross_attention` by torch's own operations."""
    return functional.scaled_dot_product_attention(q, k[of], v[of], is_there[of][:, None, None])


def has_kernel(q: Float[Tensor, "R N 1 K"]) -> bool:
    """Whether there is a kernel of ours for these queries."""
    return q.device.type == "cuda" and q.dtype != torch.float64 and fits_kernel(q.shape[-1])


def fits_kernel(K: int) -> bool:
    """Whether a kernel takes heads of width K: channels are a power of two, all at once, and not few."""
    return K >= 16 and K & (K - 1) == 0
