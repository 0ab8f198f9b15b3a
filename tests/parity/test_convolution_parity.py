"""Our causal convolution against torch's, and one gated layer against the paper's formula."""

import pytest
import torch
from torch import nn

from regard.layers.convolution import CausalConvolution
from regard.layers.taps import Taps
from regard.mixers.config import ConvolutionConfig
from regard.mixers.convolution import Convolution

EXACT = {"rtol": 0, "atol": 1e-12}
B, T, I, O = 3, 11, 5, 7


@pytest.mark.parametrize("record", [None, Taps()], ids=["fast", "plain"])
@pytest.mark.parametrize(("k", "dilation"), [(1, 1), (2, 1), (3, 1), (3, 4), (5, 2)])
def test_a_causal_convolution_equals_torchs_with_zeros_in_front(k: int, dilation: int, record: Taps | None) -> None:
    torch.manual_seed(0)
    theirs = nn.Conv1d(I, O, k, dilation=dilation).double()
    ours = CausalConvolution(I, O, k, dilation).double()
    weight = theirs.weight.permute(0, 2, 1).reshape(O, k * I)  # (O, I, k) -> taps side by side, oldest first
    ours.load_state_dict({"taps.weight": weight, "taps.bias": theirs.bias})
    x = torch.randn(B, T, I, dtype=torch.float64, requires_grad=True)
    y, _ = ours(x, ours.start(B, x), record)
    front = nn.functional.pad(x.transpose(1, 2), ((k - 1) * dilation, 0))
    expected = theirs(front).transpose(1, 2)
    torch.testing.assert_close(y, expected, **EXACT)
    dy = torch.randn_like(y)
    (ours_dx,), (theirs_dx,) = torch.autograd.grad(y, x, dy), torch.autograd.grad(expected, x, dy)
    torch.testing.assert_close(ours_dx, theirs_dx, **EXACT)


def test_the_stack_is_gated_linear_units_round_torchs_convolutions() -> None:
    torch.manual_seed(0)
    D, k = 4, 3
    ours = Convolution(ConvolutionConfig(d_model=D, n_layers=3, n_window=k, dilation_growth=2)).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.5)
    x = torch.randn(B, T, D, dtype=torch.float64)
    y, _ = ours(x)
    h = x
    for layer, block in enumerate(ours.layers):
        taps, s = block.convolution.taps, 2**layer
        weight = taps.weight.view(2 * D, k, D).transpose(1, 2)  # (2 D, D, k)
        front = nn.functional.pad(block.norm(h).transpose(1, 2), ((k - 1) * s, 0))
        both = nn.functional.conv1d(front, weight, taps.bias, dilation=s)
        h = h + (both[:, :D] * both[:, D:].sigmoid()).transpose(1, 2)
    torch.testing.assert_close(y, ours.norm(h), **EXACT)
