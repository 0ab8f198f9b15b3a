"""Our recurrent layers and stacks against torch's cells and modules, weights copied across."""

import pytest
import torch
from torch import nn

from regard.layers.elman import Elman
from regard.layers.gru import GRU
from regard.layers.lstm import LSTM
from regard.layers.record import Record
from regard.mixers.recurrent import Recurrent

EXACT = {"rtol": 0, "atol": 1e-12}
B, T, D, H = 3, 9, 5, 6
KINDS = {
    "rnn": (Elman, nn.RNN, nn.RNNCell),
    "gru": (GRU, nn.GRU, nn.GRUCell),
    "lstm": (LSTM, nn.LSTM, nn.LSTMCell),
}
PATHS = pytest.mark.parametrize("is_plain", [False, True], ids=["fused", "plain"])


@PATHS
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_equals_torchs_cell_step_by_step(kind: str, is_plain: bool) -> None:
    torch.manual_seed(0)
    ours_type, _, cell_type = KINDS[kind]
    cell = cell_type(D, H).double()
    ours = ours_type(D, H).double()
    ours.kernel.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x = torch.randn(B, T, D, dtype=torch.float64)
    state = tuple(torch.randn(B, H, dtype=torch.float64) for _ in range(2 if kind == "lstm" else 1))
    y, after = ours(x, state, Record() if is_plain else None)

    expected = state if kind == "lstm" else state[0]
    for t in range(T):
        expected = cell(x[:, t], expected)
        torch.testing.assert_close(y[:, t], expected[0] if kind == "lstm" else expected, **EXACT)
    for given, wanted in zip(after, expected if kind == "lstm" else (expected,), strict=True):
        torch.testing.assert_close(given, wanted, **EXACT)


@PATHS
@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_equals_torchs_stacked_module_and_its_gradients(kind: str, is_plain: bool) -> None:
    torch.manual_seed(0)
    ours_type, module_type, _ = KINDS[kind]
    module = module_type(D, D, num_layers=3, batch_first=True).double()
    ours = Recurrent([ours_type(D, D) for _ in range(3)]).double()
    for index, layer in enumerate(ours.layers):
        layer.kernel.load_state_dict(
            {
                name.replace(f"_l{index}", "_l0"): w
                for name, w in module.state_dict().items()
                if name.endswith(f"l{index}")
            }
        )
    x = torch.randn(B, T, D, dtype=torch.float64)
    y, state = ours(x, None, Record() if is_plain else None)
    expected, last = module(x)
    torch.testing.assert_close(y, expected, **EXACT)
    for index, layer_state in enumerate(state):
        for given, wanted in zip(layer_state, last if kind == "lstm" else (last,), strict=True):
            torch.testing.assert_close(given, wanted[index], **EXACT)

    y.square().sum().backward()
    expected.square().sum().backward()
    for index, layer in enumerate(ours.layers):
        for name, parameter in layer.kernel.named_parameters():
            wanted = module.get_parameter(name.replace("_l0", f"_l{index}")).grad
            torch.testing.assert_close(parameter.grad, wanted, **EXACT)
