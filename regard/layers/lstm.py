"""Long short-term memory."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.device import is_lowered
from regard.kernels.fused_recurrence import LayerWeights, fused_recurrence
from regard.layers.taps import Taps
from regard.layers.weight_drop import weight_drop

HiddenAndCell = tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]


class LSTM(nn.Module):
    """One LSTM layer (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000).

    i, f, g, o = σ, σ, tanh, σ of the four parts of W x + b + U h + b'
    c' = f c + i g,   h' = o tanh(c')

    b' adds nothing to b; it is there because the fused kernel wants it. b starts at 1 for the forget gate, so that
    a young network remembers (Gers et al. 2000; Jozefowicz et al. 2015). While training, a share `p_weight` of U is
    dropped (Merity et al. 2018), the same at every step.
    Taps: `gates.input` i, `gates.forget` f, `gates.candidate` g, `gates.output` o, `cell` c.
    """

    fused = "lstm"

    def __init__(self, d_in: int, d_hidden: int, p_weight: float = 0.0) -> None:
        super().__init__()
        self.kernel = nn.LSTM(d_in, d_hidden, batch_first=True)  # W, U, b, b', and the fused path
        self.d_in, self.d_hidden, self.p_weight = d_in, d_hidden, p_weight
        _, _, b, b_prime = self.kernel.all_weights[0]
        with torch.no_grad():
            b[d_hidden : 2 * d_hidden] = 1.0
            b_prime[d_hidden : 2 * d_hidden] = 0.0

    def weights(self) -> LayerWeights:
        """W, U, b, b' of one forward pass: while training, U with its mask."""
        W, U, b, b_prime = self.kernel.all_weights[0]
        return W, weight_drop(U, self.p_weight, self.training), b, b_prime

    def step(
        self, from_x: Float[Tensor, "B G"], state: HiddenAndCell, weights: LayerWeights
    ) -> tuple[HiddenAndCell, tuple[Tensor, Tensor, Tensor, Tensor]]:
        h, c = state
        _, U, _, b_prime = weights
        i, f, g, o = (from_x + functional.linear(h, U, b_prime)).chunk(4, dim=-1)  # 4 x (B, H)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        return (o * c.tanh(), c), (i, f, g, o)

    def forward(
        self, x: Float[Tensor, "B T I"], state: HiddenAndCell, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T H"], HiddenAndCell]:
        if taps is None:
            before = state[0][None], state[1][None]  # (1, B, H) each
            if (self.training and self.p_weight) or is_lowered(x):
                y, (h, c) = fused_recurrence(self.fused, x, before, [self.weights()], is_training=self.training)
            else:
                y, (h, c) = self.kernel(x, before)
            return y, (h[0], c[0])
        weights = W, _, b, _ = self.weights()
        steps, cells, gates = [], [], []
        for from_x in functional.linear(x, W, b).unbind(1):
            state, gate = self.step(from_x, state, weights)
            steps.append(state[0])
            cells.append(state[1])
            gates.append(gate)
        for name, values in zip(("input", "forget", "candidate", "output"), zip(*gates, strict=True), strict=True):
            taps.keep(f"gates.{name}", torch.stack(values, dim=1))
        taps.keep("cell", torch.stack(cells, dim=1))
        return torch.stack(steps, dim=1), state

    def start(self, B: int, like: Tensor) -> HiddenAndCell:
        return like.new_zeros(B, self.d_hidden), like.new_zeros(B, self.d_hidden)

    def flops_per_token(self) -> int:
        return 2 * 4 * self.d_hidden * (self.d_in + self.d_hidden)
