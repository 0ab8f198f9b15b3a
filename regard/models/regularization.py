"""What keeps a recurrent language model from learning a small text by heart (Merity et al. 2017, 2018)."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor


def activation_penalty(
    dropped: Float[Tensor, "B T D"], raw: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"], alpha: float, beta: float
) -> Float[Tensor, ""]:
    """Σ over the real tokens of  α mean_d (m ⊙ h_t)_d²  +  β mean_d (h_t - h_{t-1})_d²   (Merity et al. 2017).

    The first is activation regularisation (AR) of the dropped output m ⊙ h, the second temporal activation
    regularisation (TAR) of the output as it is. The loss is divided by the number of tokens, and so is this sum; the
    first token of a window, which has none before it, counts as one that did not change.
    """
    size = dropped.square().mean(-1)  # (B, T)
    change = (raw[:, 1:] - raw[:, :-1]).square().mean(-1)  # (B, T-1)
    return alpha * (size * mask).sum() + beta * (change * (mask[:, 1:] & mask[:, :-1])).sum()


@dataclass(frozen=True)
class Regularization:
    """Dropout of words and of what the head reads, and penalties on that, beside dropout of the input."""

    p_embedding: float = 0.0  # word types left out (`embed_dropping_words`)
    p_output: float = 0.0  # dropout of what the head reads, where the mixer has none of its own
    is_variational: bool = False  # input and output masks are those of a sequence (`LockedDropout`)
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def has_penalty(self) -> bool:
        return self.alpha > 0 or self.beta > 0

    def penalty(
        self, dropped: Float[Tensor, "B T D"], raw: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        """What is added to the summed nats while training and is no part of any score."""
        return activation_penalty(dropped, raw, mask, self.alpha, self.beta)


NO_REGULARIZATION = Regularization()
