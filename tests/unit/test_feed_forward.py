import math

import pytest
import torch

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
def test_gelu_is_the_tanh_form_of_gpt_2(x: float) -> None:
    expected = x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert abs(unit("gelu")(torch.tensor([[[x]]]).double()).item() - expected) < 1e-15
