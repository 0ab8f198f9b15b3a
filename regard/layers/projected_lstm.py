"""The LSTM whose state is wider inside than what it hands on."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.projected_recurrence import ProjectedWeights, projected_recurrence
from regard.layers.recurrent import LSTM_GATES
from regard.layers.taps import Taps

State = tuple[Float[Tensor, "B P"], Float[Tensor, "B H"]]
"""h, P wide, and c, H wide."""
States = tuple[Float[Tensor, "N B P"], Float[Tensor, "N B H"]]
"""Of N layers side by side."""


class ProjectedLSTM(nn.Module):
    """i, f, g, o = σ, σ, tanh, σ of the four parts of W x + b + U h + b'
    c' = clip(f c + i g, cell_clip),   h' = clip(P (o tanh(c')), projection_clip)    (Sak et al. 2014)

    clip(x, l) = min(max(x, -l), l), and x itself where l is None. Here it takes one step after the other; layers of
    both directions step at once in `read_side_by_side`. A GPU has a fused kernel that clips nothing; it is not trusted
    (docs/LOG.md).
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
        self,
        x: Float[Tensor, "B T I"],
        state: State | None = None,
        taps: Taps | None = None,
        keeps: Float[Tensor, "B T"] | None = None,
    ) -> tuple[Float[Tensor, "B T P"], State]:
        """All outputs, and the state after the last; the gates and cells of each step where there are taps.

        Before a step h and c are multiplied by its number in `keeps`: 0 begins with no memory, 1 goes on.
        """
        W, U, b, b_prime, P = self.kernel.all_weights[0]
        h, c = self.start(len(x), x) if state is None else state
        outputs: list[Tensor] = []
        steps = None if taps is None else taps.steps(x.shape[1])
        for t, from_x in enumerate(functional.linear(x, W, b).unbind(1)):  # (B, 4 H) each
            if keeps is not None:
                h, c = h * keeps[:, t, None], c * keeps[:, t, None]
            i, f, g, o = (from_x + functional.linear(h, U, b_prime)).chunk(4, dim=-1)  # 4 x (B, H)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            if steps is not None:
                named = zip(LSTM_GATES, (i, f, g, o), strict=True)
                i, f, g, o = (steps.keep(f"gates.{name}", x) for name, x in named)
            c = clip(f * c + i * g, self.cell_clip)
            if steps is not None:
                c = steps.keep("cell", c)
            h = clip(functional.linear(o * c.tanh(), P), self.projection_clip)
            outputs.append(h)
        if steps is not None:
            steps.finish()
        return torch.stack(outputs, dim=1), (h, c)

    @property
    def is_clipped(self) -> bool:
        return self.cell_clip is not None or self.projection_clip is not None

    def start(self, B: int, like: Tensor) -> State:
        return like.new_zeros(B, self.d_out), like.new_zeros(B, self.d_hidden)

    def flops_per_token(self) -> int:
        return 2 * self.d_hidden * (4 * (self.d_in + self.d_out) + self.d_out)


def read_side_by_side(
    layers: Sequence[ProjectedLSTM],
    x: Float[Tensor, "N B T I"],
    state: States | None = None,
    taps: Taps | None = None,
    keeps: Float[Tensor, "N B T"] | None = None,
) -> tuple[Float[Tensor, "N B T P"], States]:
    """The outputs of N layers of one shape, each of its own x, and the states after; taps are for a single layer.

    On a GPU all of them take a step at once where nothing is clipped or kept on the way. On a CPU that is slower (two
    layers, 32 x 64 words, 128 and 512 wide, forward and backward on one core: 0.21 s, one by one 0.18 s).
    """
    if state is None:
        state = x.new_zeros(*x.shape[:2], layers[0].d_out), x.new_zeros(*x.shape[:2], layers[0].d_hidden)
    if x.is_cuda and taps is None and not any(layer.is_clipped for layer in layers):
        return step_at_once(layers, x, state, keeps)
    return read_one_by_one(layers, x, state, taps, keeps)


def step_at_once(
    layers: Sequence[ProjectedLSTM],
    x: Float[Tensor, "N B T I"],
    state: States,
    keeps: Float[Tensor, "N B T"] | None = None,
) -> tuple[Float[Tensor, "N B T P"], States]:
    """`read_side_by_side` by the kernel that knows no clipping."""
    W, U, b, b_prime, P = (torch.stack(parts) for parts in zip(*(e.kernel.all_weights[0] for e in layers), strict=True))
    y, h, c = projected_recurrence(x, *state, ProjectedWeights(W, U, b + b_prime, P), keeps)
    return y, (h, c)


def read_one_by_one(
    layers: Sequence[ProjectedLSTM],
    x: Float[Tensor, "N B T I"],
    state: States,
    taps: Taps | None = None,
    keeps: Float[Tensor, "N B T"] | None = None,
) -> tuple[Float[Tensor, "N B T P"], States]:
    """`read_side_by_side` by the layers themselves."""
    assert taps is None or len(layers) == 1, "taps are named by layer, and there are several"
    found = [
        layer(x[n], (state[0][n], state[1][n]), taps, None if keeps is None else keeps[n])
        for n, layer in enumerate(layers)
    ]
    h, c = (torch.stack(parts) for parts in zip(*(after for _, after in found), strict=True))
    return torch.stack([y for y, _ in found]), (h, c)


def clip(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else x.clamp(-limit, limit)
