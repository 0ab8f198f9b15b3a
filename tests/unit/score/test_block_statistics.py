from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.score import bootstrap
from regard.score.bootstrap import PairTest, compare_pair, score_with_interval, sign_flip_p, student_t
from regard.score.judges import BitsPerByte

LN2 = math.log(2)
Array = NDArray[np.float64]


def count(nats: Array, n_bytes: Array) -> Array:
    """What the judge of blocks counts, (S, n, 2)."""
    return np.stack([nats, np.broadcast_to(n_bytes, nats.shape)], axis=-1)


def bits_per_byte(nats: Array, n_bytes: Array) -> float:
    return score_with_interval(BitsPerByte(()), count(nats, n_bytes)).score


def interval(nats: Array, n_bytes: Array) -> tuple[float, float]:
    found = score_with_interval(BitsPerByte(()), count(nats, n_bytes))
    return found.low, found.high


def paired(first: Array, second: Array, n_bytes: Array, *, are_counted: tuple[bool, bool] = (False, False)) -> PairTest:
    have_seeds = not are_counted[0], not are_counted[1]
    return compare_pair(BitsPerByte(()), count(first, n_bytes), count(second, n_bytes), have_seeds=have_seeds)


def test_bits_per_byte_is_nats_over_bytes_over_ln2_averaged_over_seeds() -> None:
    nats = np.array([[10.0, 30.0], [20.0, 60.0]]) * LN2  # 40 and 80 bits
    assert bits_per_byte(nats, np.array([10.0, 10.0])) == pytest.approx(3.0, abs=1e-12)  # (2 + 4) / 2


def test_blocks_weigh_by_their_bytes() -> None:
    nats = np.array([[10.0, 90.0]]) * LN2
    assert bits_per_byte(nats, np.array([10.0, 30.0])) == pytest.approx(100 / 40, abs=1e-12)


def test_an_interval_over_equal_blocks_and_one_seed_has_no_width() -> None:
    low, high = interval(np.full((1, 20), 7 * LN2), np.full(20, 7.0))
    assert (low, high) == (pytest.approx(1.0, abs=1e-12), pytest.approx(1.0, abs=1e-12))


def test_the_interval_over_seeds_is_students() -> None:
    # Equal blocks, so only the seeds vary: scores 4, 5 and 6 have variance 1, their mean 1/3; t(2) is 4.3027.
    nats = np.array([np.full(8, bits) for bits in (4.0, 5.0, 6.0)]) * LN2
    half = 4.302653 / math.sqrt(3)
    assert interval(nats, np.ones(8)) == (pytest.approx(5 - half, abs=1e-6), pytest.approx(5 + half, abs=1e-6))


def test_no_interval_reaches_below_zero_bits() -> None:
    assert interval(np.array([np.full(8, 1.0), np.full(8, 2.0)]) * LN2, np.ones(8))[0] == 0.0


@pytest.mark.parametrize(
    ("df", "confidence", "t"),  # of the printed tables; t(1) at 50% is tan(π/4)
    [(1, 0.5, 1.0), (1, 0.95, 12.706), (2, 0.95, 4.303), (4, 0.99, 4.604), (10, 0.9, 1.812), (120, 0.95, 1.980)],
)
def test_student_t_agrees_with_the_tables(df: float, confidence: float, t: float) -> None:
    assert student_t(df, confidence) == pytest.approx(t, abs=6e-4)


def test_the_seed_variances_of_two_contenders_add_with_welchs_degrees_of_freedom() -> None:
    # Variances of the means 1/3 each, with 2 degrees of freedom each: 2/3 with 4; t(4) is 2.7764.
    first = np.array([np.full(12, bits) for bits in (4.0, 5.0, 6.0)]) * LN2
    result = paired(first, first + 7 * LN2, np.ones(12))
    assert result.high - result.difference == pytest.approx(2.776445 * math.sqrt(2 / 3), abs=1e-6)
    assert result.is_clear


def test_one_seed_settles_nothing_but_counting_needs_no_more() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(2.0, 0.01, size=(2, 1, 20))
    assert paired(first, second + 1, np.ones(20)).low > 0
    assert not paired(first, second + 1, np.ones(20)).is_clear
    assert not paired(first, second + 1, np.ones(20), are_counted=(True, False)).is_clear
    assert paired(first, second + 1, np.ones(20), are_counted=(True, True)).is_clear


@pytest.mark.parametrize("is_counted", [False, True])
@pytest.mark.parametrize("n_seeds", [2, 3, 5])
def test_equal_models_are_seldom_called_settled_though_their_seeds_vary(
    n_seeds: int, is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "BLOCK_DRAWS", 500)
    assert share_settled(n_seeds, 0.0, is_counted=is_counted, n_draws=400) <= 0.07


def test_a_real_difference_is_found_with_three_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "BLOCK_DRAWS", 500)
    assert share_settled(3, 0.1, is_counted=False, n_draws=100) >= 0.9
    assert share_settled(5, 0.1, is_counted=False, n_draws=100) >= 0.99


def share_settled(n_seeds: int, gap: float, *, is_counted: bool, n_draws: int) -> float:
    """How often two models of 2 and 2 + gap bits per byte are called settled; seeds vary by 1%, blocks by 0.1%."""
    rng = np.random.default_rng(5)
    hardness, n_clear = rng.normal(2, 0.3, size=40), 0

    def drawn(shift: float, n: int, seed_sd: float) -> Array:
        noise = rng.normal(0, 0.002 * math.sqrt(40), size=40)
        return np.asarray((hardness + shift + rng.normal(0, seed_sd, size=(n, 1)) + noise) * LN2)

    for _ in range(n_draws):
        first = drawn(0.0, 1, 0.0) if is_counted else drawn(0.0, n_seeds, 0.02)
        second = drawn(gap, n_seeds, 0.02)
        n_clear += paired(first, second, np.ones(40), are_counted=(is_counted, False)).is_clear
    return n_clear / n_draws


def test_the_interval_over_blocks_agrees_with_the_normal_one_where_there_are_many() -> None:
    rng = np.random.default_rng(1)
    bits = rng.normal(2.0, 0.5, size=400)
    low, high = interval(bits[None] * LN2, np.ones(400))
    half = 1.966 * bits.std(ddof=1) / math.sqrt(400)
    assert low == pytest.approx(bits.mean() - half, abs=0.03 * half)
    assert high == pytest.approx(bits.mean() + half, abs=0.03 * half)


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
    monkeypatch.setattr(bootstrap, "MAX_EXACT_BLOCKS", 3)
    assert sign_flip_p(differences) == pytest.approx(exact, abs=0.02)
    assert 0.05 < exact < 0.95


def test_p_is_never_zero_with_many_blocks() -> None:
    assert sign_flip_p(np.ones(40)) == 1 / 10_001


def test_a_paired_difference_is_sure_where_blocks_vary_far_more_than_models() -> None:
    # Blocks differ by whole bits, the models by a steady 0.1: unpaired intervals overlap, the paired one is exact.
    blocks = np.linspace(1, 5, 12)[None] * LN2
    first, second, n_bytes = blocks, blocks + 0.1 * LN2, np.ones(12)
    assert interval(first, n_bytes)[1] > interval(second, n_bytes)[0]
    result = paired(first, second, n_bytes, are_counted=(True, True))
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
    assert interval(nats, np.ones(20)) == interval(nats, np.ones(20))
