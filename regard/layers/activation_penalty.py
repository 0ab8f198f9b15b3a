"""Penalties on what a recurrent network puts out: large values, and values that change fast."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class Activations(NamedTuple):
    """The output of the last layer, after its dropout (what the head reads) and before it."""

    dropped: Float[Tensor, "B T D"]
    raw: Float[Tensor, "B T D"]


def activation_penalty(h: Activations, mask: Bool[Tensor, "B T"], alpha: float, beta: float) -> Float[Tensor, ""]:
    """Σ over the real tokens of  α mean_d (m ⊙ h_t)_d²  +  β mean_d (h_t - h_{t-1})_d²   (Merity et al. 2017).

    The first is activation regularisation (AR) of the dropped output m ⊙ h, the second temporal activation
    regularisation (TAR) of the output as it is. The loss is divided by the number of tokens, and so is this sum; the
    first token of a window, which has none before it, counts as one that did not change.
    """
    size = h.dropped.square().mean(-1)  # (B, T)
    change = (h.raw[:, 1:] - h.raw[:, :-1]).square().mean(-1)  # (B, T-1)
    return alpha * (size * mask).sum() + beta * (change * (mask[:, 1:] & mask[:, :-1])).sum()
