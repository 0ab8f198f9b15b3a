"""Dropout for recurrent language models: of whole sequences' features, of words, and of weights."""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional


class LockedDropout(nn.Module):
    """y_{b,t} = x_{b,t} m_b,   m_b ∈ {0, 1/(1-p)}^D drawn once for a sequence, with P(0) = p (Gal & Ghahramani 2016).

    Plain dropout draws a mask for every step, so that over many steps each feature gets through somehow; here a feature
    that is gone is gone for the whole window. The next window of the same text draws again, as in Merity et al. 2018.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        if not self.training or self.p == 0:
            return x
        return x * functional.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), self.p)


def sequence_dropout(p: float, is_variational: bool) -> nn.Module:
    """Dropout on a sequence of vectors: a mask a sequence, or (Srivastava et al. 2014) a mask a step."""
    return LockedDropout(p) if is_variational else nn.Dropout(p)


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


def weight_drop(U: Float[Tensor, "G H"], p: float, is_training: bool) -> Float[Tensor, "G H"]:
    """U ⊙ M,   M ∈ {0, 1/(1-p)}^(G x H) with P(0) = p (DropConnect: Wan et al. 2013; on U: Merity et al. 2018).

    One mask serves all steps and all sequences of a forward pass, so the fused kernels run as before: they are handed
    another U. Nothing is dropped from the state itself.
    """
    return functional.dropout(U, p) if is_training and p > 0 else U
