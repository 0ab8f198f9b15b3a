"""How a model that sees all positions at once is told their order."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.static_state import table_rows
from regard.layers.taps import Taps


class LearnedPositions(nn.Module):
    """x_t + P_t, with P learned (Gehring et al. 2017; GPT-2)."""

    def __init__(self, max_context: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_context, d_model))
        nn.init.normal_(self.table, std=0.02)

    def forward(
        self, x: Float[Tensor, "B T D"], start: int | Tensor = 0, taps: Taps | None = None
    ) -> Float[Tensor, "B T D"]:
        P = table_rows(self.table, start, x.shape[1])
        return x + (P if taps is None else taps.keep("positions", P[None]))


class SinusoidalPositions(nn.Module):
    """√D x_t + P_t, with P fixed (Vaswani et al. 2017, section 3.5).

    P[t, 2i] = sin(t / 10000^(2i/D)),   P[t, 2i+1] = cos(t / 10000^(2i/D))
    """

    def __init__(self, max_context: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(max_context, d_model), persistent=False)
        self.table: Tensor

    def forward(
        self, x: Float[Tensor, "B T D"], start: int | Tensor = 0, taps: Taps | None = None
    ) -> Float[Tensor, "B T D"]:
        P = table_rows(self.table, start, x.shape[1])
        return x * math.sqrt(x.shape[-1]) + (P if taps is None else taps.keep("positions", P[None]))


class NoPositions(nn.Module):
    """x_t alone: apart from the causal mask, attention sees a bag of words."""

    def forward(
        self, x: Float[Tensor, "B T D"], start: int | Tensor = 0, taps: Taps | None = None
    ) -> Float[Tensor, "B T D"]:
        return x


def sinusoids(n: int, d_model: int) -> Float[Tensor, "n D"]:
    t = torch.arange(n, dtype=torch.float64)[:, None]
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = t / 10000 ** (i / d_model)  # (n, ceil(D/2))
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (n, ceil(D/2), 2)
    return pairs.reshape(n, -1)[:, :d_model].to(torch.get_default_dtype())


def positions(name: str, max_context: int, d_model: int) -> nn.Module:
    if name == "learned":
        return LearnedPositions(max_context, d_model)
    return SinusoidalPositions(max_context, d_model) if name == "sinusoidal" else NoPositions()
