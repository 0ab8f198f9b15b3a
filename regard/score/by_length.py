"""Scores by the length of the source: what holds up on long sentences, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.score.significance import Counts, take_sample

MOST_BINS = 6
LEAST_ITEMS = 20
"""Sentences of a bin, at least: the score of a few says little."""


@dataclass(frozen=True, kw_only=True)
class LengthScore:
    """The score of the sentences of `shortest` to `longest` words; `low` and `high` bound its 95% interval."""

    shortest: int
    longest: int
    n_items: int
    n_words: float
    """The mean length of their sources."""
    score: float
    low: float
    high: float


def count_words(text: str) -> int:
    """What is between spaces."""
    return len(text.split())


def bin_lengths(lengths: Sequence[int], most: int = MOST_BINS, least: int = LEAST_ITEMS) -> list[tuple[int, int]]:
    """The shortest and the longest length of bins that hold about as many items each; equal lengths stay together.

    >>> bin_lengths([3, 3, 4, 7, 8, 8, 9, 20], most=4, least=2)
    [(3, 3), (4, 7), (8, 8), (9, 20)]
    >>> bin_lengths([5, 5, 5, 6], least=4), bin_lengths([5, 5, 5, 5], most=2, least=2)
    ([(5, 6)], [(5, 5)])
    """
    ordered = sorted(lengths)
    n_bins = max(1, min(most, len(ordered) // least))
    bins: list[tuple[int, int]] = []
    start = 0
    for k in range(1, n_bins + 1):
        end = max(round(k * len(ordered) / n_bins), start + 1)
        while end < len(ordered) and ordered[end] == ordered[end - 1]:
            end += 1
        if end > len(ordered) or start >= len(ordered):
            break
        bins.append((ordered[start], ordered[end - 1]))
        start = end
    return bins


def score_by_length(
    score: Callable[[Counts], float],
    counts: Counts,
    documents: Sequence[int],
    lengths: Sequence[int],
    bins: Sequence[tuple[int, int]],
) -> tuple[LengthScore, ...]:
    """The score of the items in each bin, of the counts (S, n, k) of S runs, with intervals over documents and runs."""
    found = []
    for shortest, longest in bins:
        inside = [i for i, n in enumerate(lengths) if shortest <= n <= longest]
        if not inside:
            continue
        sample = take_sample(score, counts[:, inside], [documents[i] for i in inside]).estimate
        low, high = sample.interval
        found.append(
            LengthScore(
                shortest=shortest,
                longest=longest,
                n_items=len(inside),
                n_words=float(np.mean([lengths[i] for i in inside])),
                score=sample.value,
                low=max(0.0, low),
                high=high,
            )
        )
    return tuple(found)
