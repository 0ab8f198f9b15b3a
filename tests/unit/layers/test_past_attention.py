"""Attention along the band: the M positions before each, laid out as (T, M)."""

import pytest
import torch

from regard.layers.past_attention import along_band, off_band, past_average, past_scores, past_weights, past_windows
from regard.layers.scores import Score

EXACT = {"rtol": 0, "atol": 1e-12}


def test_row_t_of_the_band_starts_at_column_t() -> None:
    x = torch.tensor([[[1.0, 2, 0, 0], [0, 3, 4, 0]]])  # 2 queries behind a memory of 2
    assert along_band(x, 2).tolist() == [[[1, 2], [3, 4]]]
    assert torch.equal(off_band(along_band(x, 2)), x)


def test_windows_are_what_stood_before_each_position() -> None:
    read = torch.tensor([[7, 8, 9, 10, 11]])  # a memory of 2, then 3 new ones
    assert past_windows(read, 2).tolist() == [[[7, 8], [8, 9], [9, 10]]]


@pytest.mark.parametrize(("n_memory", "T"), [(1, 1), (3, 2), (5, 70), (40, 100)])
def test_the_band_in_blocks_equals_full_attention_under_a_mask(n_memory: int, T: int) -> None:
    draws = torch.Generator().manual_seed(T)
    q = torch.randn(2, T, 6, dtype=torch.float64, generator=draws)
    k = torch.randn(2, n_memory + T, 6, dtype=torch.float64, generator=draws)
    rows, columns = torch.arange(T)[:, None], torch.arange(n_memory + T)
    is_band = (columns >= rows) & (columns < rows + n_memory)
    expected = (q @ k.transpose(1, 2)).masked_fill(~is_band, -torch.inf).softmax(dim=-1)
    log_a, _ = past_weights(past_scores(Score("dot", 6), q, k, n_memory), torch.ones(2, T, n_memory, dtype=torch.bool))
    torch.testing.assert_close(off_band(log_a.exp()), expected, **EXACT)
    torch.testing.assert_close(past_average(log_a.exp(), k), expected @ k, **EXACT)


def test_a_position_that_is_not_there_gets_no_weight_and_no_gradient() -> None:
    scores = torch.tensor([[[0.0, 0.0, 5.0], [0.0, 0.0, 0.0]]], requires_grad=True)
    is_there = torch.tensor([[[True, True, False], [False, False, False]]])
    log_a, _ = past_weights(scores, is_there)
    assert log_a.exp().tolist() == [[[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]]
    log_a.exp()[..., 0].sum().backward()
    assert scores.grad is not None
    assert scores.grad.tolist() == [[[0.25, -0.25, 0.0], [0.0, 0.0, 0.0]]]


def test_a_sentinel_takes_its_share_of_the_softmax_and_all_of_it_where_nothing_is_there() -> None:
    is_there = torch.tensor([[[True, True, True], [False, False, False]]])
    log_a, left = past_weights(torch.zeros(1, 2, 3).double(), is_there, torch.zeros(1, 2, 1).double())
    torch.testing.assert_close(log_a.exp()[0, 0], torch.full((3,), 0.25).double(), **EXACT)
    torch.testing.assert_close(left.exp()[0], torch.tensor([0.25, 1.0]).double(), **EXACT)
