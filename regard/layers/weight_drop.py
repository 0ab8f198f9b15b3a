"""DropConnect on the weights that lead from one step to the next."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def weight_drop(U: Float[Tensor, "G H"], p: float, is_training: bool) -> Float[Tensor, "G H"]:
    """U ⊙ M,   M ∈ {0, 1/(1-p)}^(G x H) with P(0) = p (DropConnect: Wan et al. 2013; on U: Merity et al. 2018).

    One mask serves all steps and all sequences of a forward pass, so the fused kernels run as before: they are handed
    another U. Nothing is dropped from the state itself.
    """
    return functional.dropout(U, p) if is_training and p > 0 else U
