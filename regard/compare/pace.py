"""How fast this machine trains: a time that is wished for as FLOPs, and warnings where the speed was not even.

    FLOPs = seconds × n / Σ 1 / (FLOPs a second of contender i)

is the budget with which n contenders take as long, one after the other, as n trainings of so many seconds.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import harmonic_mean, median

from regard.compare.budget import Budget
from regard.compare.contenders import Entry, FinishedRun
from regard.config import RunConfig
from regard.errors import RegardError
from regard.files import write_atomically
from regard.run import engine
from regard.score.figures import count_text, duration_text
from regard.training.config import CheckpointConfig, TrainConfig
from regard.training.metrics import read_metrics
from regard.training.progress import Reporter
from regard.training.teaching_config import TeachingConfig
from regard.untrusted.small_files import MAX_NOTE, read_object

FILE = "pace.json"
MEASURED_SECONDS = 2.0
MAX_SPREAD = 0.10  # of the speed, under a budget in seconds
BUSY = 0.5  # of the speed that was possible
FEWEST_UPDATES = 100
N_PIECES = 5  # of a run, whose speeds are compared


def measure_speed(config: RunConfig, train: Mapping[str, object]) -> float:
    """Train for two seconds, in a folder that is thrown away: training tokens a second, at its fastest.

    What else the machine does in these two seconds says little about the minutes to come.
    """
    limits = {**train, "max_seconds": MEASURED_SECONDS, "eval_every": 10**9, "max_eval_tokens": 256}
    short = config.with_section("train", TrainConfig.from_dict(limits, "train"))
    short = short.with_section("checkpoint", CheckpointConfig(has_tensorboard=False))
    teaching = short.section_or_none("teaching", TeachingConfig)
    if teaching is not None:  # decoding takes long, and is no part of training
        short = short.with_section("teaching", teaching.replace(select_by="loss"))
    with tempfile.TemporaryDirectory() as folder:
        engine.train(short, Path(folder) / "run", is_tested=False)
        return max(speeds_of(read_metrics(Path(folder) / "run", "train")))


def grant_wish(budget: Budget, flops_per_second: Sequence[float], reporter: Reporter) -> Budget:
    """The budget in FLOPs with which a training takes about as long as was wished for, on the mean of contenders."""
    assert budget.wished_seconds is not None
    rate = harmonic_mean(flops_per_second)
    granted = budget.with_flops(budget.wished_seconds * rate)
    reporter.note(
        f"{duration_text(budget.wished_seconds)} of this machine are about {granted} ({count_text(rate)} a second, "
        f"measured). The same on any machine: {' '.join(granted.words())}"
    )
    return granted


def read_speeds(out: Path) -> dict[str, float]:
    """Tokens a second by contender, as they were measured before the first training; empty where none were."""
    path = out / FILE
    found = read_object(path, MAX_NOTE) if path.exists() else {}
    if not all(isinstance(speed, int | float) and speed > 0 for speed in found.values()):
        raise RegardError(f"'{path}' is damaged: it must hold a speed for each contender. Remove it, and start again.")
    return found


def write_speeds(out: Path, speeds: Mapping[str, float]) -> None:
    write_atomically(out / FILE, json.dumps(speeds, indent=1) + "\n")


def find_pace_warnings(
    entries: Sequence[Entry], speeds: Mapping[str, float], budget: Budget, unit: str = "token"
) -> list[str]:
    """Sentences on runs that were slowed down or cut short; `speeds` were measured before."""
    found = []
    for entry in entries:
        runs = [run for run in entry.runs if run.has_seeds and speeds_of(run.lines)]
        if not runs:
            continue
        pieces = [speed for run in runs for speed in speeds_of(run.lines)]
        best = max([*pieces, speeds.get(entry.name, 0.0)])
        found += [text for run in runs if (text := _warn_of_busy(run, best, budget, unit))]
        spread = (max(pieces) - min(pieces)) / median(pieces)
        if budget.seconds is not None and spread > MAX_SPREAD:
            flops = budget.with_flops(median(run.spent("flops") for run in runs)).flops
            found.append(
                f"The speed of {entry.name} varied by {spread:.0%} ({count_text(min(pieces))} to "
                f"{count_text(max(pieces))} {unit}s a second): a budget in seconds measures the machine, too. Take "
                f"FLOPs: {' '.join(Budget(flops=flops).words())}."
            )
        fewest = min(int(run.spent("step")) for run in runs)
        if fewest < FEWEST_UPDATES:
            found.append(
                f"{entry.name} was trained for {fewest} update{'s' * (fewest != 1)} only: what it could learn is "
                "hardly to be seen. Raise the budget."
            )
    return found


def _warn_of_busy(run: FinishedRun, best: float, budget: Budget, unit: str) -> str:
    speed = harmonic_mean(speeds_of(run.lines))  # of the whole run but for its start
    if speed >= BUSY * best:
        return ""
    what = "its score suffers from it" if budget.seconds is not None else "its time says little"
    return (
        f"The machine was busy while {run.name} was trained: {count_text(speed)} {unit}s a second, and "
        f"{count_text(best)} at other times; {what}."
    )


def speeds_of(lines: Sequence[Mapping[str, float]]) -> list[float]:
    """Tokens a second in each of some equal pieces of a run, from its lines of metrics; the first line is warm-up.

    A broken line, which lacks one of the two or has less than none of it, is left out.

    >>> speeds_of([{"tokens": 10 * i, "seconds": i} for i in range(1, 4)])
    [10.0, 10.0]
    """
    lines = [line for line in lines if _is_whole(line)]
    n = min(N_PIECES, len(lines) - 1)
    places = [round(i * (len(lines) - 1) / n) for i in range(n + 1)] if n > 0 else []
    ends = [(lines[i]["tokens"], lines[i]["seconds"]) for i in places]
    pieces = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(ends)]
    found = [tokens / seconds for tokens, seconds in pieces if tokens > 0 and seconds > 0]
    # All lines are of one update, or there is none.
    return found or [line["tokens"] / max(line["seconds"], 1e-9) for line in lines[-1:]]


def _is_whole(line: Mapping[str, float | None]) -> bool:
    """Whether a line says how many tokens were read in how many seconds."""
    tokens, seconds = line.get("tokens"), line.get("seconds")
    return tokens is not None and seconds is not None and tokens > 0 and seconds >= 0
