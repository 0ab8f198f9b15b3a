"""Projected LSTM layers side by side, against the plain loop over their steps."""

import pytest
import torch

from regard.layers.projected_lstm import ProjectedLSTM, read_one_by_one, read_side_by_side, step_at_once


def two_layers() -> list[ProjectedLSTM]:
    torch.manual_seed(0)
    layers = [ProjectedLSTM(3, 6, 2).double() for _ in range(2)]
    for layer in layers:
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter)
    return layers


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("T", [1, 5])
def test_layers_that_step_at_once_give_what_each_gives_alone_and_the_same_gradients(T: int, forgets: bool) -> None:
    layers = two_layers()
    x = torch.randn(2, 4, T, 3, dtype=torch.float64, requires_grad=True)
    h, c = (torch.randn(2, 4, n, dtype=torch.float64, requires_grad=True) for n in (2, 6))
    parameters = [x, h, c, *(p for layer in layers for p in layer.parameters())]
    keeps = (torch.rand(2, 4, T) < 0.6).double() if forgets else None
    results = []
    for read in (step_at_once, read_one_by_one):
        y, after = read(layers, x, (h, c), keeps=keeps)
        loss = (y * y).sum() + after[0].sin().sum() + (after[1] ** 3).sum()
        results.append([y, *after, *torch.autograd.grad(loss, parameters)])
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-12)


def test_layers_begin_with_zeros_where_no_state_is_given() -> None:
    layers, x = two_layers(), torch.randn(2, 4, 5, 3, dtype=torch.float64)
    zeros = torch.zeros(2, 4, 2, dtype=torch.float64), torch.zeros(2, 4, 6, dtype=torch.float64)
    torch.testing.assert_close(read_side_by_side(layers, x), read_one_by_one(layers, x, zeros), rtol=0, atol=1e-12)


def test_a_step_that_keeps_nothing_is_as_the_first_of_a_text() -> None:
    layers, x = two_layers(), torch.randn(2, 4, 5, 3, dtype=torch.float64)
    keeps = torch.ones(2, 4, 5, dtype=torch.float64)
    keeps[:, :, 3] = 0
    y, after = read_side_by_side(layers, x, keeps=keeps)
    later, after_later = read_side_by_side(layers, x[:, :, 3:])
    torch.testing.assert_close((y[:, :, 3:], after), (later, after_later), rtol=0, atol=1e-12)
    assert not torch.equal(y, read_side_by_side(layers, x)[0])


def test_clipped_layers_side_by_side_are_clipped_as_alone() -> None:
    layers, x = two_layers(), torch.randn(2, 4, 5, 3, dtype=torch.float64)
    for layer in layers:
        layer.cell_clip, layer.projection_clip = 0.3, 0.05
    y, (_, c) = read_side_by_side(layers, x)
    assert y.abs().max() == 0.05
    assert c.abs().max() <= 0.3
    torch.testing.assert_close(y[1], layers[1](x[1])[0], rtol=0, atol=0)
