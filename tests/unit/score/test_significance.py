"""Documents and seeds in one p: values by hand, and the rules for what is settled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from calibration import compare_texts, compare_translators, share_significant
from numpy.typing import NDArray

from regard.score.significance import (
    Estimate,
    correct_by_holm,
    explain,
    group_items,
    student_p,
    student_t,
    take_sample,
    tell_power,
    why_unsettled,
)

Array = NDArray[np.float64]


def estimate(first: Array, second: Array | None = None, documents: Sequence[int] | None = None) -> Estimate:
    """Of values (S, n): the mean, or the difference of two means; every item is a document unless told otherwise."""
    chosen = range(first.shape[1]) if documents is None else documents
    samples = [
        take_sample(lambda summed: float(summed[0] / summed[1]), np.stack([v, np.ones_like(v)], axis=-1), chosen)
        for v in (first, second)
        if v is not None
    ]
    return samples[0].estimate if second is None else samples[0] - samples[1]


def test_the_variance_over_documents_is_that_of_their_mean() -> None:
    # Of a mean the jackknife is s² / n: 1, 2, 3, 6 have mean 3 and squares 4 + 1 + 0 + 9 around it, over 3 and over 4.
    found = estimate(np.array([[1.0, 2.0, 3.0, 6.0]]))
    assert (found.value, found.v_texts, found.df) == pytest.approx((3.0, 14 / 12, 3.0), abs=1e-12)
    half = 3.182446 * math.sqrt(14 / 12)
    assert found.interval == pytest.approx((3 - half, 3 + half), abs=1e-5)


def test_documents_are_left_out_whole_not_block_by_block() -> None:
    # Two documents of ten equal blocks: what varies is one number a document, however many blocks repeat it.
    blocks = np.array([[1.0] * 10 + [3.0] * 10])
    found = estimate(blocks, documents=[0] * 10 + [1] * 10)
    assert (found.v_texts, found.df_texts) == (pytest.approx(1.0), 1.0)  # (1² + 1²) / 2, with one degree of freedom
    alone = estimate(blocks)
    assert alone.v_texts == pytest.approx(1 / 19, abs=1e-12)
    assert found.n_effective == pytest.approx(20 / 19, abs=1e-9)  # twenty blocks tell what about one would
    assert alone.n_effective == 20


def test_unequal_documents_count_for_fewer() -> None:
    # Kish: 16² / (12² + 2² + 2²) = 1.68 documents
    found = estimate(np.arange(16.0)[None], documents=[0] * 12 + [1, 1, 2, 2])
    assert found.df_texts == 1.0
    equal = estimate(np.arange(16.0)[None], documents=[i // 4 for i in range(16)])
    assert equal.df_texts == pytest.approx(3.0)


def test_a_single_document_is_cut_into_ten_stretches() -> None:
    assert np.bincount(group_items([5] * 100)).tolist() == [10] * 10
    assert group_items([5] * 4).tolist() == [0, 1, 2, 3]
    assert estimate(np.random.default_rng(0).random((1, 100)), documents=[0] * 100).df_texts == pytest.approx(9.0)


def test_the_interval_over_seeds_is_students() -> None:
    # Equal texts, so that only seeds vary: 4, 5 and 6 have variance 1, their mean 1/3; t(2) is 4.3027.
    half = 4.302653 / math.sqrt(3)
    found = estimate(np.repeat([[4.0], [5.0], [6.0]], 8, axis=1))
    assert found.interval == pytest.approx((5 - half, 5 + half), abs=1e-5)


def test_seeds_of_two_contenders_add_with_welchs_degrees_of_freedom() -> None:
    # Variances of the means 1/3 and 4/3, two degrees of freedom each: (5/3)² / (1/18 + 16/18) = 2.94.
    found = estimate(np.repeat([[29.0], [30.0], [31.0]], 8, axis=1), np.repeat([[10.0], [12.0], [14.0]], 8, axis=1))
    assert (found.v_seeds, found.df) == (pytest.approx(5 / 3), pytest.approx(25 / 9 / (17 / 18)))


def test_texts_and_seeds_give_one_p() -> None:
    # v_texts 14/12 with 3 degrees of freedom and v_seeds 1/3 with 2: ν = 1.5² / ((14/12)²/3 + (1/3)²/2)
    texts, seeds = np.array([1.0, 2.0, 3.0, 6.0]), np.array([[-1.0], [0.0], [1.0]])
    found = estimate(texts + seeds, np.zeros((1, 4)))
    assert (found.variance, found.df) == (pytest.approx(1.5), pytest.approx(2.25 / (196 / 432 + 1 / 18)))
    assert found.p == student_p(3 / math.sqrt(1.5), found.df)


@pytest.mark.parametrize("shift", [0.0, 0.4, 1.3, 2.0, 4.0])
def test_p_is_below_5_percent_just_where_the_interval_leaves_out_zero(shift: float) -> None:
    rng = np.random.default_rng(1)
    found = estimate(rng.normal(shift, 1.0, (3, 12)), rng.normal(0.0, 1.0, (4, 12)))
    low, high = found.interval
    assert (found.p < 0.05) == (not low <= 0 <= high)
    back = estimate(rng.normal(0.0, 1.0, (4, 12)), rng.normal(shift, 1.0, (3, 12)))
    assert 0 < back.p <= 1


def test_a_contender_is_not_better_than_itself_nor_by_one_item() -> None:
    values = np.random.default_rng(2).random((2, 9))
    assert estimate(values[:1], values[:1]).p == 1.0
    assert estimate(values[:, :1], values[:, :1] + 1).p == 1.0


def test_a_steady_difference_is_sure_however_much_texts_differ() -> None:
    texts = np.linspace(1, 5, 12)[None]
    found = estimate(texts + 0.1, texts)
    assert found.interval == pytest.approx((0.1, 0.1), abs=1e-9)
    assert found.p < 1e-9
    assert estimate(texts + 0.1).interval[0] < estimate(texts).interval[1]  # unpaired they overlap


@pytest.mark.parametrize(
    ("df", "p", "t"),  # of the printed tables; t(1) at 50% is tan(π/4)
    [(1, 0.5, 1.0), (1, 0.05, 12.7062), (2, 0.05, 4.3027), (4, 0.01, 4.6041), (10, 0.1, 1.8125), (120, 0.05, 1.9799)],
)
def test_student_agrees_with_the_tables(df: float, p: float, t: float) -> None:
    assert student_t(df, p) == pytest.approx(t, abs=6e-5)
    assert student_p(-t, df) == pytest.approx(p, abs=1e-5)


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert correct_by_holm([0.01, 0.02, 0.022]) == pytest.approx([0.03, 0.04, 0.04])
    assert correct_by_holm([0.9, 0.8]) == [1.0, 1.0]
    assert correct_by_holm([]) == []


@pytest.mark.parametrize(
    ("n_documents", "n_seeds", "why"),
    [
        (1, [5, 5], "one text was tested"),
        (30, [3, 1], "one seed: other seeds were not tried"),
        (30, [2, 3], "2 seeds: 3 are needed"),
        (30, [3, 4], ""),
        (4, [], "4 documents: 5 are needed"),
        (5, [], ""),  # counted
    ],
)
def test_one_text_and_few_seeds_settle_nothing(n_documents: int, n_seeds: list[int], why: str) -> None:
    assert why_unsettled(n_documents, n_seeds).startswith(why)
    assert bool(why_unsettled(n_documents, n_seeds)) == bool(why)


def test_power_says_what_more_seeds_or_more_texts_would_find() -> None:
    seeds = Estimate(value=0.1, v_texts=1e-9, df_texts=50, v_seeds=2e-4, df_seeds=4, n_effective=50)
    texts = Estimate(value=0.1, v_texts=2e-4, df_texts=50, v_seeds=1e-9, df_seeds=4, n_effective=50)

    def told(found: Estimate, n_documents: int = 51) -> str:
        return tell_power([(found, [3, 3])], n_documents, lambda gap: f"{gap:.3f} bits")

    # t(4) at 0.05 is 2.776, so δ = 2.776 · 15/16 + 0.842 · √(1 + 2.776²/8) = 3.782, and √2e-4 is 0.01414
    assert told(seeds) == (
        "With 3 seeds this comparison detects differences of 0.053 bits or more in four of five cases; "
        "for 0.027 bits take 8 seeds."
    )
    assert told(texts).endswith("for 0.020 bits take 4 times as many test documents: more seeds do not help.")
    assert told(texts, 1) == "Nothing can be settled here (one text was tested: another may say otherwise)."


def test_the_difference_that_is_told_is_found_in_four_of_five_comparisons() -> None:
    draws, n = np.random.default_rng(0), 5
    for level in (0.05, 0.005):
        told = Estimate(value=0.0, v_texts=1 / n, df_texts=n - 1, n_effective=n).detects(level)
        values = draws.normal(told, 1.0, (20_000, n))
        t = values.mean(axis=1) / values.std(axis=1, ddof=1) * math.sqrt(n)
        assert np.mean(t > student_t(n - 1, level)) == pytest.approx(0.8, abs=0.02)


def test_one_contender_with_a_single_seed_leaves_the_other_pairs_their_power() -> None:
    found = Estimate(value=0.1, v_texts=1e-9, df_texts=50, v_seeds=2e-4, df_seeds=4, n_effective=50)
    pairs = [(found, [3, 3]), (found, [3, 1]), (found, [3, 1])]
    assert tell_power(pairs, 51, str).startswith("With 3 seeds this comparison detects differences of ")
    assert tell_power(pairs[1:], 51, str) == "Nothing can be settled here (one seed: other seeds were not tried)."


def test_how_intervals_are_made_is_told() -> None:
    assert (
        explain(1, 100, "blocks", [3])[0] == "95%, by Student's t over 10 stretches of one text (jackknife) and 3 seeds"
    )
    assert explain(50, 50, "sentences", [1, 1])[0].endswith("50 sentences (jackknife); other seeds were not tried")
    assert explain(50, 50, "sentences", [1, 4])[0].endswith("(jackknife) and 1 to 4 seeds")


@pytest.mark.parametrize(("n_documents", "n_seeds"), [(5, (3, 3)), (20, (3, 3)), (20, (0, 5)), (50, (5, 5))])
def test_equal_models_on_correlated_texts_are_called_different_in_5_percent(
    n_documents: int, n_seeds: tuple[int, int]
) -> None:
    # 400 draws of 5% have a standard deviation of 1.1%
    share = share_significant(compare_texts, 400, n_documents=n_documents, n_seeds=n_seeds)
    assert 2.5 <= share <= 7.5


def test_resampling_blocks_would_call_equal_models_different_far_more_often() -> None:
    assert share_significant(compare_texts, 200, n_documents=5, n_seeds=(3, 3), foil="blocks") > 12


def test_equal_translators_are_called_different_in_5_percent() -> None:
    assert 2.0 <= share_significant(compare_translators, 150, n_sentences=60, n_seeds=(3, 3)) <= 8.0


def test_a_planted_difference_is_found() -> None:
    assert share_significant(compare_texts, 100, n_documents=50, n_seeds=(3, 3), gap=0.05) > 80


def test_a_score_that_is_no_number_is_no_difference() -> None:
    assert Estimate(value=math.nan, v_texts=math.nan, df_texts=9, n_effective=10).p == 1
    assert Estimate(value=0.1, v_texts=0.0, df_texts=9, n_effective=10).p == 0
    assert Estimate(value=0.0, v_texts=0.0, df_texts=9, n_effective=10).p == 1
