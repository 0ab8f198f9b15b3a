from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from regard.compare.budget import Budget, parse_budget
from regard.compare.contenders import Entry, FinishedRun
from regard.compare.pace import find_pace_warnings, grant_wish, speeds_of
from regard.training.progress import Silent


def run(name: str, speeds: list[float]) -> FinishedRun:
    """A run with an update a second, of so many tokens each."""
    lines: list[dict[str, Any]] = []
    tokens = 0.0
    for second, speed in enumerate(speeds, start=1):
        tokens += speed
        lines.append({"kind": "train", "step": second, "tokens": tokens, "flops": 1e6 * tokens, "seconds": second,
                      "lr": 0.1})  # fmt: skip
    return FinishedRun(name, Path(name), cast(Any, SimpleNamespace(model_name="lstm")), cast(Any, None), lines)


def entry(*runs: FinishedRun) -> list[Entry]:
    return [Entry("lstm", list(runs))]


def test_pieces_of_a_run_have_their_own_speeds() -> None:
    assert speeds_of(run("a", [100.0] * 6 + [50.0] * 5).lines) == [100.0, 100.0, 75.0, 50.0, 50.0]
    assert speeds_of(run("a", [100.0]).lines) == [100.0]
    assert speeds_of(run("a", [100.0]).lines * 2) == [100.0]  # the evaluation of a single update


@pytest.mark.parametrize("changed", [{"seconds": None}, {"tokens": -50.0}, {"tokens": 0}, {"seconds": -1.0}])
def test_a_broken_line_says_nothing_of_the_speed(changed: dict[str, Any]) -> None:
    broken: dict[str, Any] = {"kind": "train", "step": 9, "tokens": 50.0, "seconds": 9} | changed
    lines = list(run("a", [100.0] * 6).lines)
    assert speeds_of([*lines, broken]) == speeds_of(lines)
    assert find_pace_warnings(entry(replace(run("a", []), lines=[broken])), {}, Budget(flops=1e9)) == []


def test_an_even_speed_warns_of_nothing() -> None:
    runs = [run(f"lstm-seed{seed}", [100.0 + seed] * 200) for seed in range(3)]
    assert find_pace_warnings(entry(*runs), {"lstm": 110.0}, Budget(seconds=200)) == []


def test_a_budget_in_seconds_warns_where_the_speed_varies_by_more_than_a_tenth() -> None:
    runs = [run("lstm-seed0", [100.0] * 200), run("lstm-seed1", [85.0] * 200)]
    assert find_pace_warnings(entry(*runs), {}, Budget(flops=1e9)) == []
    (warning,) = find_pace_warnings(entry(*runs), {}, Budget(seconds=200))
    assert warning == (
        "The speed of lstm varied by 16% (85 to 100 tokens a second): a budget in seconds measures the machine, too. "
        "Take FLOPs: --budget 1.8e10flops."
    )


@pytest.mark.parametrize(
    ("budget", "what"),
    [(Budget(flops=1e9), "its time says little"), (Budget(seconds=200), "its score suffers from it")],
)
def test_a_run_at_less_than_half_of_the_speed_that_was_measured_is_told(budget: Budget, what: str) -> None:
    found = find_pace_warnings(entry(run("lstm-seed0", [40.0] * 200)), {"lstm": 100.0}, budget)
    assert found == [
        "The machine was busy while lstm-seed0 was trained: 40 tokens a second, and 100 at other times; " + what + "."
    ]


def test_a_slow_start_is_no_busy_machine() -> None:
    slow = run("lstm-seed0", [1.0] + [100.0] * 200)
    lines = [{**line, "seconds": line["seconds"] + 600} for line in slow.lines]
    assert find_pace_warnings(entry(replace(slow, lines=lines)), {"lstm": 100.0}, Budget(flops=1e9)) == []


def test_a_handful_of_updates_is_told() -> None:
    (warning,) = find_pace_warnings(entry(run("lstm-seed0", [100.0] * 8)), {}, Budget(flops=1e9))
    assert warning.startswith("lstm was trained for 8 updates only")


def test_all_contenders_together_take_as_long_as_was_wished_for() -> None:
    rates = [1e9, 3e9]
    budget = grant_wish(parse_budget("60s"), rates, Silent())
    assert budget.flops is not None
    assert sum(budget.flops / rate for rate in rates) == pytest.approx(2 * 60, rel=0.05)
