"""Runs that differ by their seed alone are one system: its scores are means, and seeds widen its intervals.

As for language models that are trained to be compared (regard/comparison/statistics.py): with h_text the half width
over draws of the test items, and v the variance of the mean over S seeds,

    interval = score ± √(h_text² + t² v)

where t is Student's with S - 1 degrees of freedom, and Welch's for two systems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from regard.comparison.statistics import student_t
from regard.score.bootstrap import Drawn
from regard.systems.finished import FinishedRun
from regard.systems.result import Watched

SEED_PART = re.compile(r"(?:[-_. ]+(?:seed|s)?[-_. ]*\d*|\d+)$")
CONFIDENCE = 0.95


def groups_of(runs: Sequence[FinishedRun], *, is_each: bool = False) -> list[list[int]]:
    """The places of the runs of each system, in the order given; each by itself if that leaves one system only."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(_but_seed(run), []).append(place)
    return [[place] for place in range(len(runs))] if is_each or len(groups) == 1 else list(groups.values())


def _but_seed(run: FinishedRun) -> str:
    """All settings that matter to what is learned, but for the seed."""
    config = {name: part for name, part in run.config.to_dict().items() if name not in ("seed", "checkpoint")}
    config["runtime"] = {
        name: value for name, value in config["runtime"].items() if name not in ("device", "n_threads")
    }
    return repr(config)


def group_names(names: Sequence[str], groups: Sequence[Sequence[int]]) -> list[str]:
    """A run's own name, or what the names of a system's runs have in common, and how many they are.

    >>> group_names(["lstm-s0", "lstm-s1", "big"], [[0, 1], [2]])
    ['lstm ×2', 'big']
    >>> group_names(["a", "b", "x1", "x2"], [[0, 1], [2, 3]])
    ['a ×2', 'x ×2']
    >>> group_names(["x1", "x2", "x3", "x4"], [[0, 1], [2, 3]])
    ['x1 ×2', 'x3 ×2']
    """
    own = [[names[place] for place in group] for group in groups]
    short = [each[0] if len(each) == 1 else SEED_PART.sub("", _beginning(each)) for each in own]
    return [
        (name if name and short.count(name) == 1 else each[0]) + (f" ×{len(each)}" if len(each) > 1 else "")
        for name, each in zip(short, own, strict=True)
    ]


def _beginning(names: Sequence[str]) -> str:
    """What all names begin with."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in same)


def widened(drawn: Drawn, seeds: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The interval of a score, or of a difference, with what other seeds would give.

    `seeds` are the scores of each system's runs.
    """
    low, high = drawn.low, drawn.high
    several = [np.asarray(scores) for scores in seeds if len(scores) > 1]
    v = np.array([scores.var(ddof=1) / len(scores) for scores in several])
    if not v.sum() > 0:
        return low, high
    df = v.sum() ** 2 / sum(each**2 / (len(scores) - 1) for each, scores in zip(v, several, strict=True))
    h = student_t(df, CONFIDENCE) * math.sqrt(v.sum())
    return drawn.score - math.hypot(drawn.score - low, h), drawn.score + math.hypot(high - drawn.score, h)


def mean_curve(curves: Sequence[Sequence[Watched]]) -> tuple[Watched, ...]:
    """Evaluation by evaluation, as long as all runs went on."""
    found = []
    for points in zip(*curves, strict=False):
        of = {name: float(np.mean([getattr(p, name) for p in points])) for name in ("flops", "seconds", "score")}
        found.append(Watched(step=points[0].step, tokens=round(np.mean([p.tokens for p in points])), **of))
    return tuple(found)
