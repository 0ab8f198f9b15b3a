"""Label smoothing: a share ε of every target is spread over the whole vocabulary.

    loss = (1-ε) (-log p(y)) + ε mean_v(-log p(v))          (Szegedy et al. 2016; Vaswani et al. 2017, section 5.4)

With logits z = W h + b this is the plain loss and a term without a sum of exponentials,

    loss = -log p(y) + ε (z_y - z̄),   z_y - z̄ = (w_y - w̄)·h + b_y - b̄,

so it costs no second look at V logits: the plain loss keeps its fast path.
"""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def above_mean_logit(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " N"],
) -> Float[Tensor, " N"]:
    """z_y - z̄ of every row, in the precision of the weights."""
    h = hidden.to(weight.dtype)
    of_target = (functional.embedding(targets, weight) * h).sum(dim=-1)  # w_y·h
    of_mean = (h * weight.mean(dim=0)).sum(dim=-1)
    difference = of_target - of_mean
    return difference if bias is None else difference + bias[targets] - bias.mean()
