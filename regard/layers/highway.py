"""Highway layers: a gate lets through what a layer computed, or what it read."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class Highway(nn.Module):
    """y = g ⊗ relu(W x + b) + (1 - g) ⊗ x,   g = σ(W_g x + b_g) (Srivastava et al. 2015).

    b_g starts at -2, so that a young layer carries its input (as in the paper and in ELMo).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.transform = nn.Linear(d_model, d_model)  # W, b
        self.gate = nn.Linear(d_model, d_model)  # W_g, b_g
        for layer in (self.transform, self.gate):
            nn.init.normal_(layer.weight, std=d_model**-0.5)
        nn.init.zeros_(self.transform.bias)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        g = torch.sigmoid(self.gate(x))
        return g * functional.relu(self.transform(x)) + (1 - g) * x

    def flops(self) -> int:
        return 2 * 2 * self.gate.in_features * self.gate.out_features
