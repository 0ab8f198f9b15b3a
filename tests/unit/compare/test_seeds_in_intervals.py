from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.compare.contenders import FinishedRun, mean_curve
from regard.score import bootstrap
from regard.score.bootstrap import Drawn, compare_pair, score_with_interval, widen
from regard.score.figures import Measure

DRAWN = Drawn(score=30.0, mean=30.0, low=29.0, high=32.0)


def test_one_run_tells_nothing_of_other_seeds() -> None:
    assert widen(DRAWN, [[30.0]]) == (29.0, 32.0)
    assert widen(DRAWN, [[30.0, 30.0]]) == (29.0, 32.0)


def test_seeds_widen_an_interval_by_students_t() -> None:
    # Three scores of variance 1: the mean has 1/3, and t of two degrees of freedom is 4.303.
    h = 4.3027 * (1 / 3) ** 0.5
    low, high = widen(DRAWN, [[29.0, 30.0, 31.0]])
    assert low == pytest.approx(30 - (1 + h * h) ** 0.5, abs=1e-3)
    assert high == pytest.approx(30 + (4 + h * h) ** 0.5, abs=1e-3)


def test_two_systems_have_welchs_degrees_of_freedom() -> None:
    # Variances of the means 1/3 and 4/3, two degrees each: (5/3)^2 / (1/18 + 16/18) = 2.94, t = 3.22.
    low, _ = widen(DRAWN, [[29.0, 30.0, 31.0], [10.0, 12.0, 14.0]])
    assert low == pytest.approx(30 - (1 + 3.2173**2 * 5 / 3) ** 0.5, abs=2e-2)


BLEU = Measure(name="BLEU", is_higher_better=True)


def run(*scores: float, flops: float = 1e12) -> Any:
    """A run that was watched at these scores."""
    lines = [
        {"kind": "valid", "step": i, "tokens": 1000 * i, "flops": flops * i, "seconds": 10.0 * i, "bleu": score}
        for i, score in enumerate(scores, start=1)
    ]
    return FinishedRun("run", Path(), None, None, lines)  # type: ignore[arg-type]


def test_a_curve_of_several_runs_is_their_mean_while_all_go_on() -> None:
    first, second = mean_curve([run(10, 20), run(20, 40, 60, flops=3e12)], BLEU)
    assert (first.score, second.score) == (15, 30)
    assert (second.step, second.flops, second.seconds) == (2, 4e12, 20)
    assert (second.low, second.high) == (20, 40)


class Share:
    """A judge whose score is the share of the first of three counts."""

    name, signature, is_higher_better, are_blocks = "share", "", True, False

    def score(self, summed: Any, /) -> float:
        return float(summed[0] / summed.sum())


def test_copies_of_a_system_stand_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "ITEM_DRAWS", 100)
    counts = np.random.default_rng(0).integers(0, 9, (2, 40, 3))
    judge: Any = Share()
    one = compare_pair(judge, counts[:1], counts[1:], have_seeds=(True, True))
    copies = np.stack([counts[0]] * 3), np.stack([counts[1]] * 2)
    many = compare_pair(judge, *copies, have_seeds=(True, True))
    assert (many.p, many.wins) == (one.p, one.wins)
    assert many.difference == pytest.approx(one.difference, abs=1e-12)
    assert many.low == pytest.approx(one.low, abs=1e-12)


def test_systems_of_several_runs_are_drawn_by_their_means() -> None:
    first, second = np.random.default_rng(1).integers(0, 9, (2, 40, 3))
    judge: Any = Share()
    found = score_with_interval(judge, np.stack([first, second]))
    assert found.score == pytest.approx((judge.score(first.sum(axis=0)) + judge.score(second.sum(axis=0))) / 2)
