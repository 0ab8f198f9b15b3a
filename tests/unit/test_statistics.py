from __future__ import annotations

import math

import numpy as np
import pytest

from regard.comparison import statistics
from regard.comparison.statistics import bits_per_byte, bootstrap_interval, paired, sign_flip_p

LN2 = math.log(2)


def test_bits_per_byte_is_nats_over_bytes_over_ln2_averaged_over_seeds() -> None:
    nats = np.array([[10.0, 30.0], [20.0, 60.0]]) * LN2  # 40 and 80 bits
    assert bits_per_byte(nats, np.array([10.0, 10.0])) == pytest.approx(3.0, abs=1e-12)  # (2 + 4) / 2


def test_blocks_weigh_by_their_bytes() -> None:
    nats = np.array([[10.0, 90.0]]) * LN2
    assert bits_per_byte(nats, np.array([10.0, 30.0])) == pytest.approx(100 / 40, abs=1e-12)


def test_an_interval_over_equal_blocks_and_one_seed_has_no_width() -> None:
    low, high = bootstrap_interval(np.full((1, 20), 7 * LN2), np.full(20, 7.0))
    assert (low, high) == (pytest.approx(1.0, abs=1e-12), pytest.approx(1.0, abs=1e-12))


def test_the_interval_of_two_seeds_reaches_both_seeds_and_no_further() -> None:
    # Equal blocks, so only the seeds vary: means of two draws from {1, 2} are 1, 1.5, 2 with 1/4, 1/2, 1/4.
    nats = np.array([np.full(8, 1.0), np.full(8, 2.0)]) * LN2
    assert bootstrap_interval(nats, np.ones(8)) == (pytest.approx(1.0), pytest.approx(2.0))
    assert bootstrap_interval(nats, np.ones(8), confidence=0.4) == (pytest.approx(1.5), pytest.approx(1.5))


def test_the_interval_over_blocks_agrees_with_the_normal_one_where_there_are_many() -> None:
    rng = np.random.default_rng(1)
    bits = rng.normal(2.0, 0.5, size=400)
    low, high = bootstrap_interval(bits[None] * LN2, np.ones(400))
    half = 1.96 * bits.std() / math.sqrt(400)
    assert low == pytest.approx(bits.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(bits.mean() + half, abs=0.1 * half)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0, 2.0, 3.0], 2 / 8),
        ([1.0, 2.0, -3.0], 8 / 8),  # the sum is 0: every pattern reaches it
        ([1.0, 1.0, -1.0], 8 / 8),  # the sum is 1: |±1 ±1 ±1| is 1 or 3
        ([5.0, 1.0, -1.0], 6 / 8),  # |±5 ±1 ±1| is 7, 5, 5 or 3, each twice: six reach 5
        ([1.0] * 10, 2 / 1024),
        ([0.0, 0.0], 1.0),
    ],
)
def test_sign_flip_p_counts_the_patterns_by_hand(differences: list[float], p: float) -> None:
    assert sign_flip_p(np.array(differences)) == p


def test_drawn_sign_flips_agree_with_the_enumerated_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(0).normal(0.3, 1.0, size=14)
    exact = sign_flip_p(differences)
    monkeypatch.setattr(statistics, "MAX_EXACT_BLOCKS", 3)
    assert sign_flip_p(differences) == pytest.approx(exact, abs=0.02)
    assert 0.05 < exact < 0.95


def test_p_is_never_zero_with_many_blocks() -> None:
    assert sign_flip_p(np.ones(40)) == 1 / 10_001


def test_a_paired_difference_is_sure_where_blocks_vary_far_more_than_models() -> None:
    # Blocks differ by whole bits, the models by a steady 0.1: unpaired intervals overlap, the paired one is exact.
    blocks = np.linspace(1, 5, 12)[None] * LN2
    first, second, n_bytes = blocks, blocks + 0.1 * LN2, np.ones(12)
    assert bootstrap_interval(first, n_bytes)[1] > bootstrap_interval(second, n_bytes)[0]
    result = paired(first, second, n_bytes)
    assert (result.difference, result.low, result.high) == tuple(pytest.approx(0.1, abs=1e-12) for _ in range(3))
    assert result.p == 2 / 2**12
    assert result.is_clear


def test_an_order_that_flips_with_the_seed_is_not_clear() -> None:
    first = np.array([np.full(12, 1.0), np.full(12, 3.0)])
    second = np.array([np.full(12, 2.5), np.full(12, 2.5)])
    result = paired(first, second, np.ones(12))
    assert result.p < 0.05  # over texts alone the order looks sure
    assert result.low < 0 < result.high
    assert not result.is_clear


def test_the_same_numbers_give_the_same_interval() -> None:
    nats = np.random.default_rng(3).random((3, 20))
    assert bootstrap_interval(nats, np.ones(20)) == bootstrap_interval(nats, np.ones(20))
