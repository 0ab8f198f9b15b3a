import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decode.config import SamplingConfig
from regard.decode.sampling import filter_log_probs, min_p, pick, sharpen, top_k, top_p
from regard.errors import RegardError


def log(*probs: float) -> Tensor:
    return torch.tensor([probs], dtype=torch.float64).log()


def left(log_probs: Tensor) -> list[int]:
    return log_probs[0].isfinite().nonzero().squeeze(1).tolist()


LIKELY = log(0.4, 0.1, 0.3, 0.2)


@pytest.mark.parametrize(("k", "expected"), [(1, [0]), (2, [0, 2]), (3, [0, 2, 3]), (9, [0, 1, 2, 3])])
def test_top_k_keeps_the_k_most_probable(k: int, expected: list[int]) -> None:
    assert left(top_k(LIKELY, k)) == expected


@pytest.mark.parametrize(
    ("p", "expected"), [(0.0, [0]), (0.39, [0]), (0.41, [0, 2]), (0.69, [0, 2]), (0.71, [0, 2, 3]), (1.0, [0, 1, 2, 3])]
)
def test_top_p_keeps_the_fewest_that_hold_p(p: float, expected: list[int]) -> None:
    assert left(top_p(LIKELY, p)) == expected


@pytest.mark.parametrize(("p", "expected"), [(0.0, [0, 1, 2, 3]), (0.3, [0, 2, 3]), (0.6, [0, 2]), (1.0, [0])])
def test_min_p_keeps_a_share_of_the_best(p: float, expected: list[int]) -> None:
    assert left(min_p(LIKELY, p)) == expected


def test_temperature_raises_probabilities_to_a_power() -> None:
    cooled = sharpen(log(0.8, 0.2), 0.5).exp()[0]  # squares: 0.64 to 0.04
    torch.testing.assert_close(cooled, torch.tensor([16 / 17, 1 / 17], dtype=torch.float64), rtol=0, atol=1e-15)


def test_a_tiny_temperature_is_greedy_and_no_overflow() -> None:
    for temperature in (1e-30, 1e-60, 1e-300):
        assert sharpen(LIKELY.float(), temperature).exp()[0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_filters_follow_one_another_on_what_the_last_one_left() -> None:
    config = SamplingConfig(top_k=3, top_p=0.5)  # after top-k: 4/9 3/9 2/9, so a half takes two
    expected = torch.tensor([4 / 7, 0, 3 / 7, 0], dtype=torch.float64)
    torch.testing.assert_close(filter_log_probs(LIKELY, config).exp()[0], expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("u", "expected"), [(0.0, 1), (0.24, 1), (0.26, 3), (1 - 2**-53, 3)])
def test_a_uniform_number_picks_where_the_cumulated_probability_passes_it(u: float, expected: int) -> None:
    assert pick(log(0.0, 0.25, 0.0, 0.75, 0.0), torch.tensor([u], dtype=torch.float64)).item() == expected


def test_picks_come_as_often_as_their_probability() -> None:
    n = 20_000
    uniform = torch.from_numpy(np.random.default_rng(0).random(n))
    counts = pick(LIKELY.expand(n, 4), uniform).bincount(minlength=4) / n
    assert (counts - LIKELY.exp()[0]).abs().max() < 4 * math.sqrt(0.25 / n)


def test_beam_and_sampling_exclude_each_other() -> None:
    with pytest.raises(RegardError, match="beam searches and does not sample: leave out top_k, min_p, or beam"):
        SamplingConfig(beam=3, top_k=5, min_p=0.1)


@pytest.mark.parametrize(("key", "value"), [("temperature", -1.0), ("top_k", 0), ("top_p", 1.5), ("max_tokens", 0)])
def test_settings_out_of_range_are_refused(key: str, value: float) -> None:
    with pytest.raises(RegardError, match=f"{key} must be"):
        SamplingConfig.from_dict({key: value})
