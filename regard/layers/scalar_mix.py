"""One vector from those of several layers, by weights that a task learns."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """y = γ Σ_l s_l h_l,   s = softmax(w) (ELMo's mix: Peters et al. 2018).

    All layers weigh the same at the start, and γ is 1.
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_layers))  # w
        self.scale = nn.Parameter(torch.ones(()))  # γ

    @property
    def shares(self) -> Float[Tensor, " L"]:
        """s: what part of the whole each layer is."""
        return self.weight.softmax(dim=0)

    def forward(self, layers: Sequence[Float[Tensor, "B T D"]]) -> Float[Tensor, "B T D"]:
        mixed = torch.stack([s * h for s, h in zip(self.shares, layers, strict=True)]).sum(dim=0)
        return self.scale * mixed
