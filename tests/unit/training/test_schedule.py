from __future__ import annotations

import math

import pytest

from regard.training.config import ScheduleConfig
from regard.training.schedule import learning_factor


def factor(name: str, step: int, progress: float, n_drops: int = 0, **settings: float) -> float:
    return learning_factor(ScheduleConfig.from_dict({"name": name, "n_warmup": 0} | settings), step, progress, n_drops)


def test_warm_up_rises_in_a_line_and_reaches_one_at_its_last_step() -> None:
    rates = [factor("constant", step, 0.0, n_warmup=4) for step in range(6)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_warm_up_ends_after_a_tenth_of_the_budget_at_the_latest() -> None:
    rates = [factor("constant", step, step / 40, n_warmup=1000) for step in range(6)]
    assert rates == pytest.approx([0.001, 0.25, 0.5, 0.75, 1.0, 1.0])


@pytest.mark.parametrize(("progress", "expected"), [(0.0, 1.0), (1 / 3, 0.1 + 0.9 * 0.75), (0.5, 0.55), (1.0, 0.1)])
def test_cosine_falls_from_one_to_its_final_share(progress: float, expected: float) -> None:
    assert factor("cosine", 7, progress, p_final=0.1) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("progress", "expected"), [(0.0, 1.0), (0.25, 0.8), (1.0, 0.2), (1.7, 0.2)])
def test_linear_falls_in_a_line_and_stays_at_its_final_share(progress: float, expected: float) -> None:
    assert factor("linear", 7, progress, p_final=0.2) == pytest.approx(expected, abs=1e-15)


def test_inverse_square_root_is_a_half_at_four_times_the_warm_up() -> None:
    assert factor("inverse-sqrt", 9, 0.0, n_warmup=10) == 1.0
    assert factor("inverse-sqrt", 39, 0.0, n_warmup=10) == 0.5
    assert factor("inverse-sqrt", 0, 0.0, n_warmup=10) == 0.1
    assert factor("inverse-sqrt", 3, 0.0) == 0.5
    assert math.isclose(factor("inverse-sqrt", 89, 0.0, n_warmup=10), 1 / 3)


def test_a_plateau_multiplies_once_a_drop_and_stops_at_its_lowest() -> None:
    rates = [factor("plateau", 5, 0.5, n_drops=n, factor=0.5, p_final=0.2) for n in range(5)]
    assert rates == [1.0, 0.5, 0.25, 0.2, 0.2]
