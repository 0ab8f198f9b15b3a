"""Attention of one new position over its past, where the length of the past is a number on the device.

    k_n, v_n are written at position n;   y = softmax(q · k_{0..n} / √K) v_{0..n}

With a table `where`, position t of row b's past lies in row where[b, t] of the cache: rows that exchange their pasts,
as hypotheses of a search do at every step, exchange numbers, and the keys and values stay.

Nothing here depends on n in Python, so a whole step of a model can be captured once as a CUDA graph and replayed for
every token: launching its kernels one by one takes several times longer than running them.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


def step_attention(
    q: Float[Tensor, "B N 1 K"],
    k: Float[Tensor, "B N 1 K"],
    v: Float[Tensor, "B N 1 K"],
    keys: Float[Tensor, "B N C K"],
    values: Float[Tensor, "B N C K"],
    n: Int[Tensor, " one"],
    where: Int[Tensor, "B C"] | None = None,
) -> Float[Tensor, "B N 1 K"]:
    """y, with k and v written into `keys` and `values` at position n of each row, by whatever is fastest.

    A table says of position n that it lies in the row itself, before it is asked.
    """
    if q.device.type == "cuda" and q.dtype != torch.float64 and fits_kernel(q.shape[-1]):
        from regard.layers.step_attention_cuda import fused_step_attention

        return fused_step_attention(q, k, v, keys, values, n, where)
    return plain_step_attention(q, k, v, keys, values, n, where)


def plain_step_attention(
    q: Float[Tensor, "B N 1 K"],
    k: Float[Tensor, "B N 1 K"],
    v: Float[Tensor, "B N 1 K"],
    keys: Float[Tensor, "B N C K"],
    values: Float[Tensor, "B N C K"],
    n: Int[Tensor, " one"],
    where: Int[Tensor, "B C"] | None = None,
) -> Float[Tensor, "B N 1 K"]:
    keys.index_copy_(2, n, k)
    values.index_copy_(2, n, v)
    if where is not None:
        t = torch.arange(keys.shape[2], device=q.device)
        keys, values = (x[where.long(), :, t].transpose(1, 2) for x in (keys, values))  # (B, N, C, K)
    is_past = torch.arange(keys.shape[2], device=q.device) <= n  # (C,)
    scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, N, 1, C)
    return scores.masked_fill(~is_past, -math.inf).softmax(dim=-1) @ values


def fits_kernel(K: int) -> bool:
    """The kernel takes channels as a power of two, all at once; narrower heads are left to the plain path."""
    return K >= 16 and K & (K - 1) == 0
