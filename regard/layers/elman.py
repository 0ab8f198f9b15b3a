"""The simple recurrent network."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.record import Record

Hidden = tuple[Float[Tensor, "B H"]]


class Elman(nn.Module):
    """One recurrent layer (Elman 1990).

    h_t = tanh(W x_t + b + V h_{t-1} + b')

    b' adds nothing to b; it is there because the fused kernel wants it.
    """

    def __init__(self, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.kernel = nn.RNN(d_in, d_hidden, batch_first=True)  # W, V, b, b', and the fused path
        self.d_in, self.d_hidden = d_in, d_hidden

    def step(self, from_x: Float[Tensor, "B H"], state: Hidden) -> Hidden:
        (h,) = state
        return (torch.tanh(from_x + self.from_h(h)),)

    def from_x(self, x: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch H"]:
        W, _, b, _ = self.kernel.all_weights[0]
        return functional.linear(x, W, b)

    def from_h(self, h: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        _, V, _, b_prime = self.kernel.all_weights[0]
        return functional.linear(h, V, b_prime)

    def forward(
        self, x: Float[Tensor, "B T I"], state: Hidden, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T H"], Hidden]:
        if record is None:
            y, h = self.kernel(x, state[0][None])
            return y, (h[0],)
        steps = []
        for from_x in self.from_x(x).unbind(1):
            state = self.step(from_x, state)
            steps.append(state[0])
        return torch.stack(steps, dim=1), state

    def start(self, B: int, like: Tensor) -> Hidden:
        return (like.new_zeros(B, self.d_hidden),)

    def flops_per_token(self) -> int:
        return 2 * self.d_hidden * (self.d_in + self.d_hidden)
