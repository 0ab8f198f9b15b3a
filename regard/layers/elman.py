"""The simple recurrent network."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.device import is_lowered
from regard.kernels.fused_recurrence import LayerWeights, fused_recurrence
from regard.layers.taps import Taps
from regard.layers.weight_drop import weight_drop

Hidden = tuple[Float[Tensor, "B H"]]


class Elman(nn.Module):
    """One recurrent layer (Elman 1990).

    h_t = tanh(W x_t + b + V h_{t-1} + b')

    b' adds nothing to b; it is there because the fused kernel wants it.
    While training, a share `p_weight` of V is dropped (Merity et al. 2018), the same at every step.
    """

    fused = "rnn"

    def __init__(self, d_in: int, d_hidden: int, p_weight: float = 0.0) -> None:
        super().__init__()
        self.kernel = nn.RNN(d_in, d_hidden, batch_first=True)  # W, V, b, b', and the fused path
        self.d_in, self.d_hidden, self.p_weight = d_in, d_hidden, p_weight

    def weights(self) -> LayerWeights:
        """W, V, b, b' of one forward pass: while training, V with its mask."""
        W, V, b, b_prime = self.kernel.all_weights[0]
        return W, weight_drop(V, self.p_weight, self.training), b, b_prime

    def step(self, from_x: Float[Tensor, "B H"], state: Hidden, weights: LayerWeights) -> Hidden:
        (h,), (_, V, _, b_prime) = state, weights
        return (torch.tanh(from_x + functional.linear(h, V, b_prime)),)

    def forward(
        self, x: Float[Tensor, "B T I"], state: Hidden, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T H"], Hidden]:
        if taps is None:
            if (self.training and self.p_weight) or is_lowered(x):
                before = (state[0][None],)
                y, (h,) = fused_recurrence(self.fused, x, before, [self.weights()], is_training=self.training)
            else:
                y, h = self.kernel(x, state[0][None])
            return y, (h[0],)
        weights = W, _, b, _ = self.weights()
        steps = []
        for from_x in functional.linear(x, W, b).unbind(1):
            state = self.step(from_x, state, weights)
            steps.append(state[0])
        return torch.stack(steps, dim=1), state

    def start(self, B: int, like: Tensor) -> Hidden:
        return (like.new_zeros(B, self.d_hidden),)

    def flops_per_token(self) -> int:
        return 2 * self.d_hidden * (self.d_in + self.d_hidden)
