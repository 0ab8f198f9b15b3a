import numpy as np
import pytest
from made_up_systems import watched

from regard.score.bootstrap import Drawn, bootstrap_of
from regard.systems.seeds import mean_curve, widened

DRAWN = Drawn(score=30.0, mean=30.0, low=29.0, high=32.0)


def test_one_run_tells_nothing_of_other_seeds() -> None:
    assert widened(DRAWN, [[30.0]]) == (29.0, 32.0)
    assert widened(DRAWN, [[30.0, 30.0]]) == (29.0, 32.0)


def test_seeds_widen_an_interval_by_students_t() -> None:
    # Three scores of variance 1: the mean has 1/3, and t of two degrees of freedom is 4.303.
    h = 4.3027 * (1 / 3) ** 0.5
    low, high = widened(DRAWN, [[29.0, 30.0, 31.0]])
    assert low == pytest.approx(30 - (1 + h * h) ** 0.5, abs=1e-3)
    assert high == pytest.approx(30 + (4 + h * h) ** 0.5, abs=1e-3)


def test_two_systems_have_welchs_degrees_of_freedom() -> None:
    # Variances of the means 1/3 and 4/3, two degrees each: (5/3)^2 / (1/18 + 16/18) = 2.94, t = 3.22.
    low, _ = widened(DRAWN, [[29.0, 30.0, 31.0], [10.0, 12.0, 14.0]])
    assert low == pytest.approx(30 - (1 + 3.2173**2 * 5 / 3) ** 0.5, abs=2e-2)


def test_a_curve_of_several_runs_is_their_mean_while_all_go_on() -> None:
    short, long = watched(10, 20), watched(20, 40, 60, flops=3e12)
    first, second = mean_curve([short, long])
    assert (first.score, second.score) == (15, 30)
    assert (second.step, second.flops, second.seconds) == (2, 4e12, 20)


def test_copies_of_a_system_stand_for_it() -> None:
    counts = np.random.default_rng(0).integers(0, 9, (2, 40, 3))
    one = bootstrap_of(counts[0], counts[1], lambda s: float(s[0] / s.sum()), metric="m", signature="", n_draws=100)
    copies = np.stack([counts[0]] * 3), np.stack([counts[1]] * 2)
    many = bootstrap_of(*copies, lambda s: float(s[0] / s.sum()), metric="m", signature="", n_draws=100)
    assert many.n_sentences == 40
    assert (many.p, many.wins) == (one.p, one.wins)
    assert many.difference.score == pytest.approx(one.difference.score, abs=1e-12)
    assert many.difference.low == pytest.approx(one.difference.low, abs=1e-12)


def test_systems_of_several_runs_are_drawn_by_their_means() -> None:
    first, second = np.random.default_rng(1).integers(0, 9, (2, 40, 3))
    found = bootstrap_of(np.stack([first, second]), first, lambda s: float(s[0]), metric="m", signature="", n_draws=100)
    assert found.first.score == (first[:, 0].sum() + second[:, 0].sum()) / 2
