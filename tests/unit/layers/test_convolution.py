"""Causal convolution by hand, and what the stack of them can see."""

import pytest
import torch

from regard.errors import RegardError
from regard.layers.convolution import CausalConvolution
from regard.layers.taps import Taps
from regard.mixers.config import ConvolutionConfig
from regard.mixers.convolution import Convolution, ConvolutionBlock


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[None, :, None]


def digits(n_window: int, dilation: int) -> CausalConvolution:
    """A convolution whose newest tap writes ones, the one before it tens, and so on."""
    layer = CausalConvolution(1, 1, n_window, dilation).double()
    with torch.no_grad():
        layer.taps.weight.copy_(10.0 ** torch.arange(n_window - 1, -1, -1))
        layer.taps.bias.zero_()
    return layer


@pytest.mark.parametrize("record", [None, Taps()], ids=["fast", "plain"])
def test_neighbours_are_weighed_oldest_first_and_zeros_stand_before_the_text(record: Taps | None) -> None:
    layer = digits(3, 1)
    y, past = layer(column(1, 2, 3, 4), layer.start(1, column(0)), record)
    assert y.flatten().tolist() == [1, 12, 123, 234]
    assert past.flatten().tolist() == [3, 4]


@pytest.mark.parametrize("record", [None, Taps()], ids=["fast", "plain"])
def test_dilation_skips_what_lies_between(record: Taps | None) -> None:
    layer = digits(3, 2)
    y, past = layer(column(1, 2, 3, 4, 5, 6), layer.start(1, column(0)), record)
    assert y.flatten().tolist() == [1, 2, 13, 24, 135, 246]
    assert past.flatten().tolist() == [3, 4, 5, 6]


def test_a_convolution_one_vector_wide_has_no_past() -> None:
    layer = digits(1, 1)
    y, past = layer(column(1, 2), layer.start(1, column(0)))
    assert y.flatten().tolist() == [1, 2]
    assert past.shape == (1, 0, 1)


def test_a_block_adds_what_its_gate_lets_through() -> None:
    block = ConvolutionBlock(2, n_window=1, dilation=1, p_dropout=0.0).double()
    with torch.no_grad():
        block.convolution.taps.weight.zero_()
        block.convolution.taps.bias.copy_(torch.tensor([3.0, 5.0, 0.0, torch.inf]))  # a, then g
    x = torch.tensor([[[1.0, 2.0]]], dtype=torch.float64)
    y, _ = block(x, block.convolution.start(1, x))
    assert y.flatten().tolist() == [1 + 3 / 2, 2 + 5]  # σ(0) = 1/2, σ(∞) = 1


@pytest.mark.parametrize(("growth", "n_seen"), [(1, 7), (2, 15), (3, 27)])
def test_a_stack_sees_as_far_as_its_dilations_add_up_to(growth: int, n_seen: int) -> None:
    """Three layers of three: 1 + 2 (1 + 1 + 1), 1 + 2 (1 + 2 + 4), 1 + 2 (1 + 3 + 9)."""
    torch.manual_seed(0)
    config = ConvolutionConfig(d_model=4, n_layers=3, n_window=3, dilation_growth=growth)
    assert config.n_seen == n_seen
    mixer = Convolution(config).double()
    x = torch.randn(1, 30, 4, dtype=torch.float64)
    changed = x.clone()
    changed[:, 1, 0] += 1  # a norm does not see a shift of all numbers
    is_different = (mixer(x)[0] != mixer(changed)[0]).any(dim=-1)[0]
    last = int(is_different.nonzero().max())
    assert last == n_seen


def test_a_reach_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(RegardError, match=r"n_layers 40.*reach back 2,199,023,255,551 tokens; at most 1,048,576 are"):
        ConvolutionConfig(n_layers=40)
