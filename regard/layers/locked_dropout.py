"""Variational dropout: one mask for all steps of a sequence."""

from jaxtyping import Float
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

    def extra_repr(self) -> str:
        return f"p={self.p}"


def sequence_dropout(p: float, is_variational: bool) -> nn.Module:
    """Dropout on a sequence of vectors: a mask a sequence, or (Srivastava et al. 2014) a mask a step."""
    return LockedDropout(p) if is_variational else nn.Dropout(p)
