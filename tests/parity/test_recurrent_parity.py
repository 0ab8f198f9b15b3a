"""Our recurrent layers and stacks against torch's cells and modules, weights copied across."""

import pytest
import torch
from torch import nn

from regard.layers.elman import Elman
from regard.layers.gru import GRU
from regard.layers.lstm import LSTM
from regard.layers.record import Record
from regard.mixers.config import LSTMConfig
from regard.mixers.recurrent import Recurrent, lstm
from regard.models.table import build_model

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


@pytest.mark.parametrize("kind", KINDS)
def test_one_call_for_the_whole_stack_equals_layer_by_layer_and_its_gradients(kind: str) -> None:
    torch.manual_seed(0)
    stack = Recurrent([KINDS[kind][0](D, D) for _ in range(3)]).double()
    assert stack.fits_one_call
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    state = tuple(tuple(torch.randn_like(part) for part in layer) for layer in stack.start(B, T, x))
    results = []
    for way in (stack.at_once, stack.layer_by_layer):
        stack.zero_grad()
        x.grad = None
        y, after = way(x, state)
        y.square().sum().backward()
        grads = [p.grad for p in stack.parameters()]
        results.append([y, x.grad, *grads, *(part for layer in after for part in layer)])
    for given, wanted in zip(*results, strict=True):
        torch.testing.assert_close(given, wanted, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_one_call_drops_between_the_layers_and_nowhere_else(kind: str) -> None:
    torch.manual_seed(0)
    stack = Recurrent([KINDS[kind][0](D, D) for _ in range(2)], p_dropout=0.5).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    state = stack.start(B, T, x)
    y, after = stack.at_once(x, state)
    again, after_again = stack.at_once(x, state)
    assert not torch.allclose(y, again)
    for part, part_again in zip(after[0], after_again[0], strict=True):  # the first layer hears no dropout
        assert torch.equal(part, part_again)
    assert (y != 0).all()  # the output's dropout comes later
    stack.eval()
    torch.testing.assert_close(stack.at_once(x, state)[0], stack.layer_by_layer(x, state)[0], **EXACT)


def test_a_stack_fits_one_call_only_if_that_computes_the_same() -> None:
    same = [LSTM(D, D), LSTM(D, D)]
    assert Recurrent(same, 0.5).fits_one_call
    assert Recurrent(same, is_variational=True).fits_one_call
    assert Recurrent(same, 0.5, p_hidden=0.0, is_variational=True).fits_one_call
    assert not Recurrent(same, 0.5, is_variational=True).fits_one_call
    assert not Recurrent([LSTM(D, H), LSTM(H, D)]).fits_one_call
    assert not Recurrent([LSTM(D, D), LSTM(D, D, p_weight=0.5)]).fits_one_call
    assert not Recurrent(same[:1]).fits_one_call


@PATHS
def test_a_stack_of_wide_inner_layers_equals_torchs_lstms_one_above_the_other(is_plain: bool) -> None:
    torch.manual_seed(0)
    ours = lstm(LSTMConfig(d_model=D, d_hidden=H, n_layers=3)).double()
    theirs = [nn.LSTM(i, o, batch_first=True).double() for i, o in ((D, H), (H, H), (H, D))]
    for layer, module in zip(ours.layers, theirs, strict=True):
        layer.kernel.load_state_dict(module.state_dict())
    x = torch.randn(B, T, D, dtype=torch.float64)
    y, state = ours(x, None, Record() if is_plain else None)
    expected = x
    for (h, c), module in zip(state, theirs, strict=True):
        expected, (h_last, c_last) = module(expected)
        torch.testing.assert_close(h, h_last[0], **EXACT)
        torch.testing.assert_close(c, c_last[0], **EXACT)
    torch.testing.assert_close(y, expected, **EXACT)


def test_the_strong_lstm_equals_the_equations_of_its_paper() -> None:
    """One training pass with every kind of dropout, against torch's modules with the masks laid on by hand."""
    torch.manual_seed(0)
    V, p = 13, {"embedding": 0.2, "input": 0.3, "weight": 0.5, "hidden": 0.25, "output": 0.4}
    config = LSTMConfig(
        d_model=D,
        d_hidden=H,
        n_layers=3,
        p_dropout=p["output"],
        p_input=p["input"],
        p_hidden=p["hidden"],
        p_embedding=p["embedding"],
        p_weight=p["weight"],
        is_variational=True,
        activation_penalty=2.0,
        slowness_penalty=1.0,
    )
    model = build_model("lstm", config, V).double()
    ids = torch.randint(0, V, (B, T))

    def mask(p: float, *shape: int) -> torch.Tensor:
        return nn.functional.dropout(torch.ones(shape, dtype=torch.float64), p)

    modules = [nn.LSTM(d_in, d_out, batch_first=True).double() for d_in, d_out in ((D, H), (H, H), (H, D))]
    for module, layer in zip(modules, model.mixer.layers, strict=True):
        module.load_state_dict(layer.kernel.state_dict())
    torch.manual_seed(7)
    x = (model.embedding * mask(p["embedding"], V)[:, None])[ids] * mask(p["input"], B, 1, D)
    for index, module in enumerate(modules):
        if index:
            x = x * mask(p["hidden"], B, 1, H)
        with torch.no_grad():
            module.weight_hh_l0 *= mask(p["weight"], *module.weight_hh_l0.shape)
        x, _ = module(x)
    dropped = x * mask(p["output"], B, 1, D)

    torch.manual_seed(7)
    h, _ = model.hidden(ids)
    torch.testing.assert_close(h.raw, x, **EXACT)
    torch.testing.assert_close(h.dropped, dropped, **EXACT)
    penalty = model.penalty_of(h, torch.ones(B, T, dtype=torch.bool)) / (B * T)
    AR, TAR = dropped.square().mean(), (x[:, 1:] - x[:, :-1]).square().mean() * (T - 1) / T
    torch.testing.assert_close(penalty, 2 * AR + TAR, **EXACT)
