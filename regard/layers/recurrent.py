"""Recurrent layers: Elman's network, the gated recurrent unit and long short-term memory, and how each is unrolled."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.fused_recurrence import run_layer
from regard.kernels.onnx_recurrence import LayerWeights
from regard.layers.dropout import weight_drop
from regard.layers.taps import Step, Taps

State = tuple[Float[Tensor, "B H"], ...]
"""h; of an LSTM h and c."""
LSTM_GATES = ("input", "forget", "candidate", "output")


def elman_step(
    from_x: Float[Tensor, "B H"], from_h: Float[Tensor, "B H"], state: State, taps: Step | None = None
) -> State:
    """h' = tanh(W x + b + U h + b') (Elman 1990)."""
    return (torch.tanh(from_x + from_h),)


def gru_step(
    from_x: Float[Tensor, "B G"], from_h: Float[Tensor, "B G"], state: State, taps: Step | None = None
) -> State:
    """One step of gated recurrent units (Cho et al. 2014). Taps: the gates r, z, n.

    r = σ(W_r x + b_r + U_r h + b'_r)
    z = σ(W_z x + b_z + U_z h + b'_z)
    n = tanh(W_n x + b_n + r (U_n h + b'_n))
    h' = (1 - z) n + z h

    The paper resets h before U_n; here, as in cuDNN, r comes after it, which needs one product fewer in sequence.
    """
    (h,) = state
    x_r, x_z, x_n = from_x.chunk(3, dim=-1)  # 3 x (B, H)
    h_r, h_z, h_n = from_h.chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    if taps is not None:
        r, z = taps.keep("gates.reset", r), taps.keep("gates.update", z)
    n = (x_n + r * h_n).tanh()
    if taps is not None:
        n = taps.keep("gates.candidate", n)
    return ((1 - z) * n + z * h,)


def lstm_step(
    from_x: Float[Tensor, "B G"], from_h: Float[Tensor, "B G"], state: State, taps: Step | None = None
) -> State:
    """One LSTM step (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000). Taps: the gates i, f, g, o, and c'.

    i, f, g, o = σ, σ, tanh, σ of the four parts of W x + b + U h + b'
    c' = f c + i g,   h' = o tanh(c')
    """
    _, c = state
    i, f, g, o = (from_x + from_h).chunk(4, dim=-1)  # 4 x (B, H)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    if taps is not None:
        i, f, g, o = (taps.keep(f"gates.{name}", x) for name, x in zip(LSTM_GATES, (i, f, g, o), strict=True))
    c = f * c + i * g
    if taps is not None:
        c = taps.keep("cell", c)
    return o * c.tanh(), c


class Cell(NamedTuple):
    """What tells one kind of recurrent layer from another."""

    step: Callable[[Tensor, Tensor, State, Step | None], State]
    kernel: type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]
    n_products: int
    """How many times as wide as h are W x and U h."""
    n_states: int = 1


CELLS: dict[str, Cell] = {
    "rnn": Cell(elman_step, nn.RNN, 1),
    "gru": Cell(gru_step, nn.GRU, 3),
    "lstm": Cell(lstm_step, nn.LSTM, 4, n_states=2),
}


class RecurrentLayer(nn.Module):
    """h_t = step(x_t, h_{t-1}), where `kind` says which step: rnn, gru or lstm.

    b' adds nothing to b in an Elman layer and an LSTM; it is there because the fused kernel wants it. An LSTM's b
    starts at 1 for the forget gate, so that a young network remembers (Gers et al. 2000; Jozefowicz et al. 2015).
    While training, a share `p_weight` of U is dropped (Merity et al. 2018), the same at every step.
    Taps: `gates.NAME` of every gate, `cell`, an LSTM's c, and `hidden`, h.
    """

    def __init__(self, kind: str, d_in: int, d_hidden: int, p_weight: float = 0.0) -> None:
        super().__init__()
        self.kind, self.cell = kind, CELLS[kind]
        self.kernel = self.cell.kernel(d_in, d_hidden, batch_first=True)  # W, U, b, b', and the fused path
        self.d_in, self.d_hidden, self.p_weight = d_in, d_hidden, p_weight
        if kind == "lstm":
            _, _, b, b_prime = self.kernel.all_weights[0]
            with torch.no_grad():
                b[d_hidden : 2 * d_hidden] = 1.0
                b_prime[d_hidden : 2 * d_hidden] = 0.0

    def weights(self) -> LayerWeights:
        """W, U, b, b' of one forward pass: while training, U with its mask."""
        W, U, b, b_prime = self.kernel.all_weights[0]
        return W, weight_drop(U, self.p_weight, self.training), b, b_prime

    def step(
        self, from_x: Float[Tensor, "B G"], state: State, weights: LayerWeights, taps: Step | None = None
    ) -> State:
        """The state after one step; `from_x` is W x + b."""
        _, U, _, b_prime = weights
        after = self.cell.step(from_x, functional.linear(state[0], U, b_prime), state, taps)
        return after if taps is None else (taps.keep("hidden", after[0]), *after[1:])

    def forward(
        self, x: Float[Tensor, "B T I"], state: State, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T H"], State]:
        if taps is not None:
            return unroll(self, x, state, taps)
        has_mask = self.training and self.p_weight > 0
        return run_layer(self.kind, self.kernel, x, state, self.weights, has_mask)

    def start(self, B: int, like: Tensor) -> State:
        return tuple(like.new_zeros(B, self.d_hidden) for _ in range(self.cell.n_states))

    def flops_per_token(self) -> int:
        return 2 * self.cell.n_products * self.d_hidden * (self.d_in + self.d_hidden)


def unroll(
    layer: RecurrentLayer, x: Float[Tensor, "B T I"], state: State, taps: Taps
) -> tuple[Float[Tensor, "B T H"], State]:
    """Take one step after the other, and keep what each computed."""
    weights = W, _, b, _ = layer.weights()
    outputs, steps = [], taps.steps(x.shape[1])
    for from_x in functional.linear(x, W, b).unbind(1):
        state = layer.step(from_x, state, weights, steps.now())
        outputs.append(state[0])
    steps.finish()
    return torch.stack(outputs, dim=1), state  # (B, T, H)
