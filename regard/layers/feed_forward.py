"""The two layers that a Transformer applies at each position by itself."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.gelu import gelu


class FeedForward(nn.Module):
    """y = W_2 φ(W_1 x + b_1) + b_2 (Vaswani et al. 2017, section 3.3).

    φ is ReLU or GELU.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.is_gelu = activation == "gelu"
        self.up = nn.Linear(d_model, d_ff)  # W_1, b_1
        self.out = nn.Linear(d_ff, d_model)  # W_2, b_2

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        a = self.up(x)  # (B, T, F)
        y: Tensor = self.out(gelu(a) if self.is_gelu else functional.relu(a))
        return y

    def flops_per_token(self) -> int:
        return 2 * 2 * self.up.in_features * self.up.out_features
