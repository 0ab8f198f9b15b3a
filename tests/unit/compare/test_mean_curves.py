from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard.compare.contenders import FinishedRun, mean_curve
from regard.errors import RegardError
from regard.score.figures import Measure

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


@pytest.mark.parametrize("left_out", ["tokens", "flops", "seconds", "bleu"])
def test_a_broken_line_of_metrics_is_no_point_of_the_curve(left_out: str) -> None:
    broken = run(10, 20, 30)
    del broken.lines[1][left_out]
    assert [point.score for point in mean_curve([broken], BLEU)] == [10, 30]


def test_what_a_training_took_is_in_the_last_line_that_says_it() -> None:
    broken = run(10, 20, 30)
    broken.lines[-1].pop("flops")
    broken.lines[-1]["seconds"] = None
    assert (broken.spent("flops"), broken.spent("seconds"), broken.spent("tokens")) == (2e12, 20, 3000)
    with pytest.raises(RegardError, match=r"metrics.jsonl has no line that says how many tokens the training took"):
        replace(broken, lines=[{"kind": "valid", "step": 1}]).spent("tokens")
