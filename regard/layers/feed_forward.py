"""The two layers that a Transformer applies at each position by itself."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.gelu import ACTIVATIONS, IN_PLACE
from regard.kernels.linear import Linear


class FeedForward(nn.Module):
    """y = W_2 φ(W_1 x + b_1) + b_2 (Vaswani et al. 2017, section 3.3).

    φ is ReLU, GELU x Φ(x) (Hendrycks & Gimpel 2016; `gelu_erf`), or GPT-2's tanh form of it (`gelu`), or Swish
    x σ(x) (Ramachandran et al. 2017).
    """

    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.activation, self.activate = activation, ACTIVATIONS[activation]  # φ
        self.up = Linear(d_model, d_ff)  # W_1, b_1
        self.out = Linear(d_ff, d_model)  # W_2, b_2

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        a = self.up(x)  # (B, T, F)
        y: Tensor = self.out(self.activate(a) if torch.is_grad_enabled() else IN_PLACE[self.activation](a))
        return y

    def flops_per_token(self) -> int:
        return 2 * 2 * self.up.in_features * self.up.out_features
