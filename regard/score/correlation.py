"""How well numbers go together: Pearson's and Spearman's correlation, and the error that is left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.score.significance import Counts

MEASURES = {"pearson": "Pearson", "spearman": "Spearman"}


@dataclass
class Correlation:
    """The correlation × 100 of numbers with the true ones; of their ranks, for Spearman's.

    Ranks are those among all items, also where some of them are left out to find an interval.
    """

    gold: Sequence[float]
    measure: str = "pearson"
    is_higher_better: bool = True
    signature: str = "correlation of given and true numbers × 100"
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = MEASURES[self.measure]

    def counts(self, answers: Sequence[Any]) -> Counts:
        """(n, 6): 1, x, y, x², y², x y, with x and y taken from their means."""
        return _moments(answers, self.gold, self.measure)

    def score(self, summed: Counts, /) -> float:
        n, x, y, xx, yy, xy = (float(value) for value in summed)
        spread = math.sqrt(max(0.0, n * xx - x * x)) * math.sqrt(max(0.0, n * yy - y * y))
        return 100 * (n * xy - x * y) / spread if spread > 0 else 0.0

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        others = [name for name in MEASURES if name != self.measure]
        found = {
            MEASURES[name]: fmean(self.score(_moments(a, self.gold, name).sum(axis=0)) for a in runs) for name in others
        }
        errors = [np.sqrt(np.mean((np.asarray(a, dtype=np.float64) - np.asarray(self.gold)) ** 2)) for a in runs]
        return found | {"root mean square error": float(np.mean(errors))}


def _moments(answers: Sequence[Any], gold: Sequence[float], measure: str) -> Counts:
    x, y = (np.asarray(values, dtype=np.float64) for values in (answers, gold))
    if measure == "spearman":
        x, y = rank_numbers(x), rank_numbers(y)
    x, y = x - x.mean(), y - y.mean()
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def rank_numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal numbers share the mean of theirs.

    >>> rank_numbers(np.array([10.0, 30.0, 10.0, 20.0])).tolist()
    [1.5, 4.0, 1.5, 3.0]
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[which]
