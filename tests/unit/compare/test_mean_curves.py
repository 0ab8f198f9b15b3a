from pathlib import Path
from typing import Any

from regard.compare.contenders import FinishedRun, mean_curve
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
