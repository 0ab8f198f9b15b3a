"""How good answers are that were found in a passage: exact match and F1 over words, as SQuAD counts them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.score.significance import Counts

MEASURES = {"f1": "F1", "exact": "exact match, %"}
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def plain_words(answer: str) -> list[str]:
    """The words of an answer without case, punctuation and articles (Rajpurkar et al. 2016).

    >>> plain_words("The Queen's  hat.")
    ['queens', 'hat']
    """
    bare = "".join(character for character in answer.lower() if character not in string.punctuation)
    return _ARTICLES.sub(" ", bare).split()


def overlap_f1(guess: str, truth: str) -> float:
    """2 shared / (given + true) words; without an answer on either side, 1 where there is none on both.

    >>> overlap_f1("the old town", "old town hall"), overlap_f1("", ""), overlap_f1("", "town")
    (0.8, 1.0, 0.0)
    """
    given, true = plain_words(guess), plain_words(truth)
    if not given or not true:
        return float(given == true)
    shared = sum((Counter(given) & Counter(true)).values())
    return 2 * shared / (len(given) + len(true))


@dataclass
class Spans:
    """Answers against what people said, the best of several; "" is no answer, and so is an empty list of true ones."""

    gold: Sequence[Sequence[str]]
    measure: str = "f1"
    is_higher_better: bool = True
    signature: str = "SQuAD's rules: case, punctuation and articles do not count; the best of several true answers"
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = MEASURES[self.measure].removesuffix(", %")

    def counts(self, answers: Sequence[Any]) -> Counts:
        """(n, 3): the F1, whether it is exact, 1."""
        rows = []
        for guess, truths in zip(answers, self.gold, strict=True):
            true = list(truths) or [""]
            exact = any(plain_words(guess) == plain_words(truth) for truth in true)
            rows.append((max(overlap_f1(guess, truth) for truth in true), float(exact), 1.0))
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    def score(self, summed: Counts, /) -> float:
        return float(100 * summed[0 if self.measure == "f1" else 1] / summed[2]) if summed[2] else 0.0

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        other = "exact" if self.measure == "f1" else "f1"
        judge = Spans(self.gold, other)
        return {MEASURES[other]: float(np.mean([judge.score(self.counts(a).sum(axis=0)) for a in runs]))}
