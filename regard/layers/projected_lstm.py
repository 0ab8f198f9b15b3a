"""The LSTM whose state is wider inside than what it hands on."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.taps import Taps

State = tuple[Float[Tensor, "B P"], Float[Tensor, "B H"]]
"""h, P wide, and c, H wide."""


class ProjectedLSTM(nn.Module):
    """i, f, g, o = σ, σ, tanh, σ of the four parts of W x + b + U h + b'
    c' = clip(f c + i g, cell_clip),   h' = clip(P (o tanh(c')), projection_clip)    (Sak et al. 2014)

    clip(x, l) = min(max(x, -l), l), and x itself where l is None. It takes one step after the other. On a CPU that is
    as fast as torch's own loop (32 x 64 words, 128 and 512 wide, forward and backward: 0.108 s, and 0.105 s). A GPU
    replays the steps of training as one graph; its fused kernel clips nothing, and is not trusted (docs/LOG.md).
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        d_out: int,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
    ) -> None:
        super().__init__()
        assert d_out < d_hidden, "a projection makes narrower"
        self.kernel = nn.LSTM(d_in, d_hidden, proj_size=d_out, batch_first=True)  # W, U, b, b', P
        self.d_in, self.d_hidden, self.d_out = d_in, d_hidden, d_out
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        with torch.no_grad():  # a young network remembers (Gers et al. 2000; Jozefowicz et al. 2015)
            _, _, b, b_prime, _ = self.kernel.all_weights[0]
            b[d_hidden : 2 * d_hidden] = 1.0
            b_prime[d_hidden : 2 * d_hidden] = 0.0

    def forward(
        self, x: Float[Tensor, "B T I"], state: State | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T P"], State]:
        """All outputs, and the state after the last; the gates and cells of each step where there are taps."""
        W, U, b, b_prime, P = self.kernel.all_weights[0]
        h, c = self.start(len(x), x) if state is None else state
        outputs, cells, gates = [], [], []
        for from_x in functional.linear(x, W, b).unbind(1):  # (B, 4 H) each
            i, f, g, o = (from_x + functional.linear(h, U, b_prime)).chunk(4, dim=-1)  # 4 x (B, H)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            c = clip(f * c + i * g, self.cell_clip)
            h = clip(functional.linear(o * c.tanh(), P), self.projection_clip)
            outputs.append(h)
            cells.append(c)
            gates.append((i, f, g, o))
        if taps is not None:
            for name, values in zip(("input", "forget", "candidate", "output"), zip(*gates, strict=True), strict=True):
                taps.keep(f"gates.{name}", torch.stack(values, dim=1))
            taps.keep("cell", torch.stack(cells, dim=1))
        return torch.stack(outputs, dim=1), (h, c)

    def start(self, B: int, like: Tensor) -> State:
        return like.new_zeros(B, self.d_out), like.new_zeros(B, self.d_hidden)

    def flops_per_token(self) -> int:
        return 2 * self.d_hidden * (4 * (self.d_in + self.d_out) + self.d_out)


def clip(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else x.clamp(-limit, limit)
