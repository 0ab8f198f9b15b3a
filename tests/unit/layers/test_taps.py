"""Taps remember what is kept, hand back what stands in for it, and know its gradient, step by step too."""

import math

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.layers.attention import plain_attention
from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps, keep

X = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]], dtype=torch.float64)  # (B = 1, T = 2, D = 2)


def test_without_taps_a_value_is_handed_back_as_it_is() -> None:
    assert keep(None, "x", X) is X
    assert Taps().keep("x", X) is X


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (lambda x: 2 * x, [[2.0, 4.0], [6.0, 8.0]]),
        (torch.tensor([[math.nan, 0.0]]), [[1.0, 0.0], [3.0, 0.0]]),
        (torch.tensor([[[9.0, 9.0], [math.nan, math.nan]]]).numpy(), [[9.0, 9.0], [3.0, 4.0]]),
        (0.5, [[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def test_what_is_kept_and_handed_back_is_what_stands_in_for_a_value(given: object, expected: list[list[float]]) -> None:
    taps = Taps(replace={"layers.0.hidden": given})  # type: ignore[dict-item]
    found = taps.scope("layers.0").keep("hidden", X)
    assert found[0].tolist() == expected
    assert taps["layers.0.hidden"] is found
    taps.check_replaced()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.zeros(3, 3), r"What replaces 'x' has the shape \(3, 3\), and the value has \(1, 2, 2\)"),
        (
            lambda x: x[0],
            r"'x' must be a tensor of shape \(1, 2, 2\), as the value is, not shape \(2, 2\)",
        ),
        (lambda x: None, r"as the value is, not None"),
    ],
)
def test_what_does_not_fit_is_refused(given: object, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        Taps(replace={"x": given}).keep("x", X)  # type: ignore[dict-item]


def test_replacing_what_is_never_computed_is_refused() -> None:
    taps = Taps(replace={"layers.0.hiden": 0.0})
    taps.keep("layers.0.hidden", X)
    with pytest.raises(RegardError, match=r"no value 'layers\.0\.hiden' to replace\. Did you mean"):
        taps.check_replaced()


def test_attention_goes_on_with_the_weights_that_stand_in() -> None:
    """Uniform weights on both positions give the mean of the values, whatever q and k are."""
    taps = Taps(replace={"attention": 0.5})
    z = plain_attention(X[:, None], X[:, None], X[:, None], 0.0, taps)
    assert z[0, 0].tolist() == [[2.0, 3.0], [2.0, 3.0]]
    scores = taps["scores"][0, 0]  # q·k/√2, and no look ahead
    assert scores[0, 1] == -math.inf
    torch.testing.assert_close(scores[1, 0], torch.tensor(11 / math.sqrt(2), dtype=torch.float64))
    assert taps["z"] is z


def lstm(n: int = 1) -> RecurrentLayer:
    torch.manual_seed(0)
    return RecurrentLayer("lstm", 2, n).double()


def test_a_cell_that_is_set_at_one_step_is_felt_at_all_later_ones() -> None:
    layer, x = lstm(), torch.randn(1, 4, 2, dtype=torch.float64)
    plain, changed = Taps(), Taps(replace={"cell": torch.tensor([[math.nan], [5.0], [math.nan], [math.nan]])})
    layer(x, layer.start(1, x), plain)
    layer(x, layer.start(1, x), changed)
    before, after = plain["cell"][0, :, 0], changed["cell"][0, :, 0]
    assert after[0] == before[0]
    assert after[1] == 5
    f, i, g = (changed[f"gates.{name}"][0, 2, 0] for name in ("forget", "input", "candidate"))
    torch.testing.assert_close(after[2], f * 5 + i * g)


def test_a_function_sees_all_steps_and_decides_about_the_one_at_hand() -> None:
    layer, x, seen = lstm(), torch.randn(1, 3, 2, dtype=torch.float64), []

    def double_second(cell: Tensor) -> Tensor:
        seen.append((cell[0, :, 0] != 0).tolist())
        return cell * torch.tensor([1.0, 2.0, 1.0]).double()[None, :, None]

    plain, changed = Taps(), Taps(replace={"cell": double_second})
    layer(x, layer.start(1, x), plain)
    layer(x, layer.start(1, x), changed)
    assert seen == [[True, False, False], [True, True, False], [True, True, True]]
    assert changed["cell"][0, 1] == 2 * plain["cell"][0, 1]


def test_the_gradient_of_a_cell_counts_all_that_follows_from_it() -> None:
    """c_2 = f_2 c_1 + ..., so that dc_2/dc_1 is f_2 plus what goes through h_1; with U = 0 it is f_2 alone."""
    layer, x = lstm(), torch.randn(1, 3, 2, dtype=torch.float64)
    torch.nn.init.zeros_(layer.kernel.all_weights[0][1])  # U
    taps = Taps()
    layer(x, layer.start(1, x), taps)
    taps["cell"][0, 2].sum().backward()
    f = taps["gates.forget"][0, :, 0]
    expected = torch.stack([f[1] * f[2], f[2], torch.ones_like(f[2])])
    torch.testing.assert_close(taps.gradient("cell")[0, :, 0], expected)


def test_a_gradient_that_never_came_is_an_error() -> None:
    taps = Taps()
    taps.keep("hidden", (2 * X.clone().requires_grad_()))
    with pytest.raises(RegardError, match="No gradient came to the tap 'hidden'"):
        taps.gradient("hidden")
    with pytest.raises(RegardError, match=r"There is no tap 'hiden'\. Did you mean 'hidden'\?"):
        taps.gradient("hiden")


def test_a_record_shows_its_names_and_becomes_arrays() -> None:
    taps = Taps()
    assert repr(taps) == "<Taps: nothing recorded yet>"
    taps.scope("layers.0").keep("hidden", torch.ones(1, 2, 3, dtype=torch.bfloat16, requires_grad=True))
    assert repr(taps) == "<Taps: layers.0.hidden (1, 2, 3)>"
    (found,) = taps.to_numpy().values()
    assert (found.dtype, found.shape) == ("float32", (1, 2, 3))
