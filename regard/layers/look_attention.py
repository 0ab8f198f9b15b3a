"""Attention of one new position of each row to the entry that it looks at, where many rows look at one entry.

    y_r = softmax(q_r · k_{of[r]} / √K) v_{of[r]}, over the positions of the entry that are there

The hypotheses of a search all look at the source that they translate. Its keys and values are kept once, and a row
that comes to stand for another source has a number changed.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.layers.masked_attention import masked_attention
from regard.layers.step_attention import fits_kernel


def look_attention(
    q: Float[Tensor, "R N 1 K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    is_there: Bool[Tensor, "B S"],
    of: Int[Tensor, " R"],
) -> Float[Tensor, "R N 1 K"]:
    """y, by whatever is fastest. Of an entry with nothing in it any numbers may come."""
    if q.device.type == "cuda" and q.dtype != torch.float64 and fits_kernel(q.shape[-1]):
        from regard.layers.look_attention_cuda import fused_look_attention

        return fused_look_attention(q, k, v, is_there, of)
    return plain_look_attention(q, k, v, is_there, of)


def plain_look_attention(
    q: Float[Tensor, "R N 1 K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    is_there: Bool[Tensor, "B S"],
    of: Int[Tensor, " R"],
) -> Float[Tensor, "R N 1 K"]:
    return masked_attention(q, k[of], v[of], is_there[of])[0]
