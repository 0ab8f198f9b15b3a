"""The gated recurrent unit."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.record import Record

Hidden = tuple[Float[Tensor, "B H"]]


class GRU(nn.Module):
    """One layer of gated recurrent units (Cho et al. 2014).

    r = σ(W_r x + b_r + U_r h + c_r)
    z = σ(W_z x + b_z + U_z h + c_z)
    n = tanh(W_n x + b_n + r (U_n h + c_n))
    h' = (1 - z) n + z h

    The paper resets h before U_n; here, as in cuDNN, r comes after it, which needs one product fewer in sequence.
    Taps: `gates.reset` r, `gates.update` z, `gates.candidate` n.
    """

    def __init__(self, d_in: int, d_hidden: int) -> None:
        super().__init__()
        self.kernel = nn.GRU(d_in, d_hidden, batch_first=True)  # W, U, b, c, and the fused path
        self.d_in, self.d_hidden = d_in, d_hidden

    def step(self, from_x: Float[Tensor, "B G"], state: Hidden) -> tuple[Hidden, tuple[Tensor, Tensor, Tensor]]:
        (h,) = state
        x_r, x_z, x_n = from_x.chunk(3, dim=-1)  # 3 x (B, H)
        h_r, h_z, h_n = self.from_h(h).chunk(3, dim=-1)
        r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
        n = (x_n + r * h_n).tanh()
        return ((1 - z) * n + z * h,), (r, z, n)

    def from_x(self, x: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch G"]:
        W, _, b, _ = self.kernel.all_weights[0]
        return functional.linear(x, W, b)

    def from_h(self, h: Float[Tensor, "B H"]) -> Float[Tensor, "B G"]:
        _, U, _, c = self.kernel.all_weights[0]
        return functional.linear(h, U, c)

    def forward(
        self, x: Float[Tensor, "B T I"], state: Hidden, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T H"], Hidden]:
        if record is None:
            y, h = self.kernel(x, state[0][None])
            return y, (h[0],)
        steps, gates = [], []
        for from_x in self.from_x(x).unbind(1):
            state, gate = self.step(from_x, state)
            steps.append(state[0])
            gates.append(gate)
        for name, values in zip(("reset", "update", "candidate"), zip(*gates, strict=True), strict=True):
            record.keep(f"gates.{name}", torch.stack(values, dim=1))
        return torch.stack(steps, dim=1), state

    def start(self, B: int, like: Tensor) -> Hidden:
        return (like.new_zeros(B, self.d_hidden),)

    def flops_per_token(self) -> int:
        return 2 * 3 * self.d_hidden * (self.d_in + self.d_hidden)
