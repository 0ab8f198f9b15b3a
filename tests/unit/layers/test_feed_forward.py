import math

import pytest
import torch

from regard.kernels.gelu import gelu
from regard.layers.feed_forward import FeedForward


def unit(activation: str) -> FeedForward:
    """Both layers with a weight of one and no bias, so that only the activation is left."""
    layer = FeedForward(1, 1, activation).double()
    for parameter in layer.parameters():
        torch.nn.init.constant_(parameter, float(parameter.dim() == 2))
    return layer


def test_relu_cuts_off_what_is_negative() -> None:
    y = unit("relu")(torch.tensor([[[-2.0], [3.0]]]).double())
    assert y.flatten().tolist() == [0.0, 3.0]


@pytest.mark.parametrize("x", [-3.0, -0.5, 1.0, 2.0])
def test_swish_is_x_times_its_sigmoid(x: float) -> None:
    expected = x / (1 + math.exp(-x))
    assert abs(unit("swish")(torch.tensor([[[x]]]).double()).item() - expected) < 1e-15
    with torch.no_grad():
        assert abs(unit("swish")(torch.tensor([[[x]]]).double()).item() - expected) < 1e-15


@pytest.mark.parametrize("x", [-3.0, -0.5, 1.0, 2.0])
def test_gelu_is_the_tanh_form_of_gpt_2(x: float) -> None:
    expected = x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert abs(unit("gelu")(torch.tensor([[[x]]]).double()).item() - expected) < 1e-15


def test_the_sigmoid_form_equals_torchs_tanh_form_in_value_and_slope() -> None:
    x = torch.linspace(-8, 8, 101, dtype=torch.float64, requires_grad=True)
    expected = torch.nn.functional.gelu(x, approximate="tanh")
    (slope,) = torch.autograd.grad(expected.sum(), x)
    y = gelu(x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], slope, rtol=0, atol=1e-14)
    assert y.grad_fn is not None
    assert "GELUBySigmoid" in y.grad_fn.name()
    assert torch.equal(gelu(x.detach()), expected)
