"""Dropout of whole words."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def embed_dropping_words(
    ids: Int[Tensor, "B T"], E: Float[Tensor, "V D"], p: float, is_training: bool
) -> Float[Tensor, "B T D"]:
    """x_{b,t} = m_w E_w,   w = ids_{b,t},   m_w ∈ {0, 1/(1-p)} drawn once a word type, with P(0) = p.

    A dropped word is missing wherever it stands in the batch (Gal & Ghahramani 2016; Merity et al. 2018). Multiplying
    what was looked up gives the same numbers and gradients as a mask on the rows of E, and touches no other row. Where
    E is the output matrix too, only its use as an input is dropped.
    """
    x = functional.embedding(ids, E)
    if not is_training or p == 0:
        return x
    m = functional.dropout(E.new_ones(len(E)), p)  # (V,)
    return x * m[ids][..., None]
