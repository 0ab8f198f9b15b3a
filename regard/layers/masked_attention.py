"""Attention to all positions that are there: no order, no past, only padding is hidden."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional


def masked_weights(
    scores: Float[Tensor, "*batch T S"], is_there: Bool[Tensor, "*mask S"]
) -> Float[Tensor, "*batch T S"]:
    """A = softmax of the scores over the positions that are there; all zero where none is.

    `is_there` has the dimensions of the scores, or ones in their places.
    """
    lowest = torch.finfo(scores.dtype).min  # and not -inf, which makes NaN of a source with nothing in it
    return scores.masked_fill(~is_there, lowest).softmax(dim=-1).masked_fill(~is_there, 0.0)


def masked_attention(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    is_there: Bool[Tensor, "B S"],
    p_dropout: float = 0.0,
    wants_weights: bool = False,
) -> tuple[Float[Tensor, "B N T K"], Float[Tensor, "B N T S"] | None]:
    """A v,  A = softmax(q kᵀ/√K) over the positions that are there; and A where it is wanted.

    The fused kernel hides A, so wanting it takes the plain path.
    """
    seen = is_there[:, None, None]  # (B, 1, 1, S)
    if not wants_weights:
        return functional.scaled_dot_product_attention(q, k, v, seen, p_dropout), None
    A = masked_weights(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), seen)
    return functional.dropout(A, p_dropout) @ v, A
