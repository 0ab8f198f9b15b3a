"""The gated recurrent unit."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.device import is_lowered
from regard.kernels.fused_recurrence import LayerWeights, fused_recurrence
from regard.layers.taps import Taps
from regard.layers.weight_drop import weight_drop

Hidden = tuple[Float[Tensor, "B H"]]


class GRU(nn.Module):
    """One layer of gated recurrent units (Cho et al. 2014).

    r = σ(W_r x + b_r + U_r h + c_r)
    z = σ(W_z x + b_z + U_z h + c_z)
    n = tanh(W_n x + b_n + r (U_n h + c_n))
    h' = (1 - z) n + z h

    The paper resets h before U_n; here, as in cuDNN, r comes after it, which needs one product fewer in sequence.
    While training, a share `p_weight` of U is dropped (Merity et al. 2018), the same at every step.
    Taps: `gates.reset` r, `gates.update` z, `gates.candidate` n.
    """

    fused = "gru"

    def __init__(self, d_in: int, d_hidden: int, p_weight: float = 0.0) -> None:
        super().__init__()
        self.kernel = nn.GRU(d_in, d_hidden, batch_first=True)  # W, U, b, c, and the fused path
        self.d_in, self.d_hidden, self.p_weight = d_in, d_hidden, p_weight

    def weights(self) -> LayerWeights:
        """W, U, b, c of one forward pass: while training, U with its mask."""
        W, U, b, c = self.kernel.all_weights[0]
        return W, weight_drop(U, self.p_weight, self.training), b, c

    def step(
        self, from_x: Float[Tensor, "B G"], state: Hidden, weights: LayerWeights
    ) -> tuple[Hidden, tuple[Tensor, Tensor, Tensor]]:
        (h,), (_, U, _, c) = state, weights
        x_r, x_z, x_n = from_x.chunk(3, dim=-1)  # 3 x (B, H)
        h_r, h_z, h_n = functional.linear(h, U, c).chunk(3, dim=-1)
        r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
        n = (x_n + r * h_n).tanh()
        return ((1 - z) * n + z * h,), (r, z, n)

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
        steps, gates = [], []
        for from_x in functional.linear(x, W, b).unbind(1):
            state, gate = self.step(from_x, state, weights)
            steps.append(state[0])
            gates.append(gate)
        for name, values in zip(("reset", "update", "candidate"), zip(*gates, strict=True), strict=True):
            taps.keep(f"gates.{name}", torch.stack(values, dim=1))
        return torch.stack(steps, dim=1), state

    def start(self, B: int, like: Tensor) -> Hidden:
        return (like.new_zeros(B, self.d_hidden),)

    def flops_per_token(self) -> int:
        return 2 * 3 * self.d_hidden * (self.d_in + self.d_hidden)
