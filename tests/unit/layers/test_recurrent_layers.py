"""Recurrent layers of width one, worked by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps

PATHS = pytest.mark.parametrize("record", [None, Taps], ids=["fused", "plain"])
Path = Callable[[], Taps] | None


def with_weights(layer: RecurrentLayer, from_x: list[float], from_h: list[float], b: list[float]) -> None:
    """One number a gate; the second bias is zero."""
    W, U, b_x, b_h = layer.kernel.all_weights[0]
    with torch.no_grad():
        for parameter, values in ((W, from_x), (U, from_h), (b_x, b), (b_h, [0.0] * len(b))):
            parameter.copy_(torch.tensor(values, dtype=torch.float64).view_as(parameter))


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[None, :, None]  # (1, T, 1)


def number(value: float) -> Tensor:
    return torch.tensor([[value]], dtype=torch.float64)  # (1, 1)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@PATHS
def test_elman_adds_input_and_past_and_squashes(record: Path) -> None:
    layer = RecurrentLayer("rnn", 1, 1).double()
    with_weights(layer, [2.0], [0.5], [0.1])
    y, (h,) = layer(column(1.0, -1.0), (number(0.4),), record and record())
    first = math.tanh(2.0 * 1.0 + 0.5 * 0.4 + 0.1)
    second = math.tanh(2.0 * -1.0 + 0.5 * first + 0.1)
    torch.testing.assert_close(y, column(first, second), rtol=0, atol=1e-15)
    assert h.item() == y[0, -1, 0].item()


@PATHS
def test_lstm_forgets_writes_and_shows_by_its_gates(record: Path) -> None:
    layer = RecurrentLayer("lstm", 1, 1).double()
    with_weights(layer, [0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.0, 1.0, 0.0, 0.0])  # i, f, g, o
    h0, c0, x = 0.3, -0.2, 2.0
    i, f = sigmoid(0.1 * x + 0.5 * h0), sigmoid(0.2 * x + 0.6 * h0 + 1)
    g, o = math.tanh(0.3 * x + 0.7 * h0), sigmoid(0.4 * x + 0.8 * h0)
    c = f * c0 + i * g
    state = number(h0), number(c0)
    _, (h_after, c_after) = layer(column(x), state, record and record())
    assert abs(c_after.item() - c) < 1e-15
    assert abs(h_after.item() - o * math.tanh(c)) < 1e-15


@PATHS
def test_gru_with_zero_weights_halves_its_state(record: Path) -> None:
    layer = RecurrentLayer("gru", 1, 1).double()
    with_weights(layer, [0.0] * 3, [0.0] * 3, [0.0] * 3)  # r = z = 1/2, n = 0
    _, (h,) = layer(column(5.0), (number(0.5),), record and record())
    assert h.item() == 0.25


def test_gru_resets_what_the_candidate_sees_of_the_past() -> None:
    layer = RecurrentLayer("gru", 1, 1).double()
    with_weights(layer, [-100.0, -100.0, 1.0], [0.0, 0.0, 50.0], [0.0] * 3)  # r = z = 0: a state is only its input
    _, (h,) = layer(column(1.0), (number(0.5),))
    assert abs(h.item() - math.tanh(1.0)) < 1e-15


def test_a_young_lstm_remembers() -> None:
    layer = RecurrentLayer("lstm", 3, 4)
    _, _, b, b_too = layer.kernel.all_weights[0]
    assert (b + b_too)[4:8].tolist() == [1.0] * 4


def test_taps_are_the_gates_of_the_equations() -> None:
    lstm, gru = Taps(), Taps()
    x = torch.randn(2, 3, 4)
    layer = RecurrentLayer("lstm", 4, 5)
    y, _ = layer(x, layer.start(2, x), lstm)
    i, f, g, o = (lstm[f"gates.{name}"] for name in ("input", "forget", "candidate", "output"))
    c = lstm["cell"]
    torch.testing.assert_close(c[:, 1:], f[:, 1:] * c[:, :-1] + i[:, 1:] * g[:, 1:])
    torch.testing.assert_close(y, o * c.tanh())
    second = RecurrentLayer("gru", 4, 5)
    y, _ = second(x, second.start(2, x), gru)
    z, n = gru["gates.update"], gru["gates.candidate"]
    torch.testing.assert_close(y[:, 1:], (1 - z[:, 1:]) * n[:, 1:] + z[:, 1:] * y[:, :-1])
    assert "gates.reset" in gru


def test_layers_hold_only_the_kernels_weights() -> None:
    for layer, kernel in (
        (RecurrentLayer("rnn", 3, 4), nn.RNN(3, 4)),
        (RecurrentLayer("gru", 3, 4), nn.GRU(3, 4)),
        (RecurrentLayer("lstm", 3, 4), nn.LSTM(3, 4)),
    ):
        assert [tuple(p.shape) for p in layer.parameters()] == [tuple(p.shape) for p in kernel.parameters()]


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_a_layer_has_a_shape_where_there_is_no_memory(kind: str) -> None:
    """The size of a run is estimated on the meta device; dropped weights go another way than whole ones."""
    layer = RecurrentLayer(kind, 3, 4, p_weight=0.5).to("meta")
    x = torch.zeros(2, 5, 3, device="meta")
    y, _ = layer(x, layer.start(2, x))
    assert y.shape == (2, 5, 4)
