"""How good classes are: accuracy, F1 by class and over classes, Matthews' coefficient, and what is taken for what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from regard.score.significance import Counts

MEASURES = {"accuracy": "accuracy, %", "macro-f1": "macro F1", "matthews": "Matthews"}
SIGNATURES = {
    "accuracy": "the share of texts whose class is right",
    "macro-f1": "the mean over classes of 2 right / (given + true), those that come in neither left out",
    "matthews": "Matthews' correlation coefficient × 100, for several classes as Gorodkin 2004",
}


@dataclass
class Classes:
    """The classes of some texts, against the true ones; counted by class: right, given, true."""

    gold: Sequence[str]
    labels: Sequence[str]
    measure: str = "accuracy"
    is_higher_better: bool = True
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name, self.signature = MEASURES[self.measure].removesuffix(", %"), SIGNATURES[self.measure]

    def counts(self, answers: Sequence[Any]) -> Counts:
        """(n, 3 K): of every class, whether it was rightly given, given, and true."""
        number = {label: k for k, label in enumerate(self.labels)}
        found = np.zeros((len(answers), 3, len(self.labels)), dtype=np.int64)
        for row, guess, truth in zip(found, answers, self.gold, strict=True):
            row[1, number[guess]] = row[2, number[truth]] = 1
            row[0, number[truth]] = guess == truth
        return found.reshape(len(answers), -1)

    def score(self, summed: Counts, /) -> float:
        return score_classes(summed, self.measure)

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        sums = [self.counts(answers).sum(axis=0) for answers in runs]
        others = [measure for measure in MEASURES if measure != self.measure]
        return {MEASURES[name]: fmean(score_classes(summed, name) for summed in sums) for name in others}


def score_classes(summed: Counts, measure: str) -> float:
    """A measure in per cent, of counts that were added up.

    >>> summed = np.array([2, 1, 3, 1, 2, 2])  # right, given, true of two classes
    >>> [round(score_classes(summed, name), 1) for name in MEASURES]
    [75.0, 73.3, 57.7]
    """
    right, given, true = (part.astype(np.float64) for part in np.split(np.asarray(summed), 3))
    n, c = true.sum(), right.sum()
    if measure == "accuracy":
        return float(100 * c / n) if n else 0.0
    if measure == "macro-f1":
        seen = given + true > 0
        return float(100 * np.mean(2 * right[seen] / (given + true)[seen])) if seen.any() else 0.0
    spread = math.sqrt((n**2 - (given**2).sum()) * (n**2 - (true**2).sum()))
    return float(100 * (c * n - (given * true).sum()) / spread) if spread else 0.0


def count_confusions(gold: Sequence[str], answers: Sequence[str], labels: Sequence[str]) -> list[list[int]]:
    """How often each true class, a row, was given as each class, a column.

    >>> count_confusions(["a", "a", "b"], ["a", "b", "b"], ["a", "b"])
    [[1, 1], [0, 1]]
    """
    number = {label: k for k, label in enumerate(labels)}
    found = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(found, ([number[g] for g in gold], [number[a] for a in answers]), 1)
    return found.tolist()
