"""Scores by the length of the source, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.score.by_length import bin_lengths, count_words, score_by_length


def share(summed: np.ndarray) -> float:
    return float(summed[0] / summed[1])


def test_each_bin_has_the_score_of_its_own_items() -> None:
    """Items of 2, 2, 9 and 9 words; right of asked: 1 of 1, 0 of 1, 3 of 4, 1 of 4."""
    counts = np.array([[[1, 1], [0, 1], [3, 4], [1, 4]]])
    short, long = score_by_length(share, counts, range(4), [2, 2, 9, 9], [(1, 4), (5, 9)])
    assert (short.shortest, short.longest, short.n_items, short.n_words, short.score) == (1, 4, 2, 2.0, 0.5)
    assert (long.n_items, long.n_words, long.score) == (2, 9.0, 0.5)
    # Without one item the short bin is 0 or 1: a jackknife variance of (0.5² + 0.5²) / 2, an interval beyond 0 and 1.
    assert short.low == 0.0
    assert short.high > 1.0
    assert 0.0 < long.high - long.score < short.high - short.score


def test_a_bin_without_items_is_left_out() -> None:
    counts = np.array([[[1, 1], [1, 1]]])
    (only,) = score_by_length(share, counts, range(2), [3, 4], [(1, 5), (6, 9)])
    assert (only.shortest, only.longest) == (1, 5)


def test_seeds_widen_the_interval() -> None:
    one = np.array([[[1, 1], [0, 1], [1, 1], [0, 1]]])
    two = np.concatenate([one, 1 - one * [1, 0] + one * [0, 1] - [0, 1]])  # the other half right
    (alone,), (both,) = (score_by_length(share, c, range(4), [3] * 4, [(3, 3)]) for c in (one, two))
    assert alone.score == both.score == 0.5
    worse = np.concatenate([one, one * [0, 1]])  # a seed that has nothing right
    (apart,) = score_by_length(share, worse, range(4), [3] * 4, [(3, 3)])
    assert apart.score == pytest.approx(0.25)
    assert apart.high - apart.score > alone.high - alone.score


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(1, 8), st.integers(1, 30))
def test_every_length_is_in_one_bin(lengths: list[int], most: int, least: int) -> None:
    bins = bin_lengths(lengths, most, least)
    assert all(sum(low <= n <= high for low, high in bins) == 1 for n in lengths)
    assert 1 <= len(bins) <= most
    assert bins == sorted(bins)


def test_words_are_what_is_between_spaces() -> None:
    assert count_words(" The dog barks . ") == 4
