"""Is one system better than another, or lucky with these sentences? The paired bootstrap of Koehn (2004).

Draw n of the n test sentences with replacement, score both systems on that draw, and look at the difference
d_r = second - first; do so R times. With d on the sentences as they are:

    interval = the middle 95% of d_r
    p        = (1 + #{r : |d_r| - mean |d_r| >= |d|}) / (R + 1)
    wins     = #{r : d_r > 0} / R

p is the one of sacreBLEU's `--paired-bs`, of the same draws for the same seed, but for one thing: there, ties do not
count, so that a system compared with itself gets the smallest p there is; here it gets 1. `wins` is Koehn's own figure.

sacreBLEU's `PairedTest` takes its seed from the environment and gives no interval of the difference, so the draws are
made here; the statistics of a sentence, and the score of their sums, are sacreBLEU's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

from regard.errors import RegardError
from regard.score.translation import References, bleu_metric, chrf_metric, streams

SEED = 12345  # sacreBLEU's
BLOCK = 2**20  # sentences drawn at a time: memory stays at some megabytes however many there are

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
ScoreOfSum = Callable[[Counts], float]
"""The score of sentences whose counts were added up, (k,)."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A score on the sentences as they are, its mean over the draws, and what holds 95% of the draws."""

    score: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PairedBootstrap:
    """Two systems on the same sentences. The difference is second - first: positive where the second is better."""

    metric: str
    signature: str
    first: Drawn
    second: Drawn
    difference: Drawn
    p: float
    wins: float
    """Share of the draws in which the second is better."""
    n_sentences: int
    n_draws: int
    seed: int

    @property
    def is_clear(self) -> bool:
        """The order holds over draws of sentences: p < 0.05, and the interval of the difference leaves out zero."""
        return self.p < 0.05 and not self.difference.low <= 0.0 <= self.difference.high

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"is_clear": self.is_clear}


def paired_bootstrap(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metric: str = "bleu",
    tokenizer: str = "13a",
    n_draws: int = 1000,
    seed: int = SEED,
) -> PairedBootstrap:
    """Compare two systems' hypotheses for the same references, by `bleu`, whose `tokenizer` it is, or `chrf`."""
    if metric not in ("bleu", "chrf"):
        raise RegardError(f"The metric must be bleu or chrf, not '{metric}'.")
    if n_draws < 100:
        raise RegardError(f"{n_draws} draws are too few for an interval of 95%: give n_draws of at least 100.")
    scorer: Metric = bleu_metric(tokenizer=tokenizer) if metric == "bleu" else chrf_metric()
    a, b = (statistics_of(scorer, hypotheses, references) for hypotheses in (first, second))
    signature = str(scorer.get_signature())
    return bootstrap_of(a, b, score_by(scorer), metric=metric, signature=signature, n_draws=n_draws, seed=seed)


def bootstrap_of(
    first: Counts,
    second: Counts,
    score: ScoreOfSum,
    *,
    metric: str,
    signature: str,
    n_draws: int = 1000,
    seed: int = SEED,
) -> PairedBootstrap:
    """The same for any score of sums: `first` and `second` are what is counted in each sentence, (n, k).

    (S, n, k) are S systems that stand for one, say with different seeds: their scores are averaged.
    """
    sides = [side[None] if side.ndim == 2 else side for side in (first, second)]
    scores = [_mean_score(score, side.sum(axis=1)) for side in sides]
    drawn = _scores_of_draws(score, sides, n_draws, seed)  # (R, 2)
    gaps = drawn[:, 1] - drawn[:, 0]
    return PairedBootstrap(
        metric=metric,
        signature=signature,
        first=_drawn(scores[0], drawn[:, 0]),
        second=_drawn(scores[1], drawn[:, 1]),
        difference=_drawn(scores[1] - scores[0], gaps),
        p=p_value(gaps, scores[1] - scores[0]),
        wins=float((gaps > 0).mean()),
        n_sentences=sides[0].shape[1],
        n_draws=n_draws,
        seed=seed,
    )


def p_value(gaps: Floats, difference: float) -> float:
    """p as above, of the differences d_r over the draws and the one on all sentences.

    |d_r| is 1, 1, 1 and 5, 2 in the mean, so that one draw in four lies 2 or more above it:

    >>> p_value(np.array([1.0, -1.0, 1.0, 5.0]), 2.0)
    0.4
    """
    sizes = np.abs(gaps)
    return float((1 + int((sizes - sizes.mean() >= abs(difference)).sum())) / (len(gaps) + 1))


def statistics_of(scorer: Metric, hypotheses: Sequence[str], references: References) -> Counts:
    """What sacreBLEU counts in each sentence, so that the score of any set of sentences is that of a sum: (n, k)."""
    counted = scorer._extract_corpus_statistics(list(hypotheses), streams(hypotheses, references))
    return np.array(counted, dtype=np.int64)


def score_by(scorer: Metric) -> ScoreOfSum:
    """sacreBLEU's score of what it counted."""
    return lambda summed: float(scorer._compute_score_from_stats(summed.tolist()).score)


def _scores_of_draws(score: ScoreOfSum, sides: list[Counts], n_draws: int, seed: int) -> Floats:
    draws = np.random.default_rng(seed)
    n = sides[0].shape[1]
    scores = np.empty((n_draws, len(sides)))
    per_block = max(1, BLOCK // n)
    for start in range(0, n_draws, per_block):
        rows = draws.choice(n, size=(min(per_block, n_draws - start), n), replace=True)
        times = np.stack([np.bincount(row, minlength=n) for row in rows])  # (r, n), how often each sentence came
        for i, side in enumerate(sides):
            summed = np.stack([times @ counts for counts in side], axis=1)  # (r, S, k)
            scores[start : start + len(rows), i] = [_mean_score(score, each) for each in summed]
    return scores


def _mean_score(score: ScoreOfSum, summed: Counts) -> float:
    """Over systems that stand for one, (S, k)."""
    return float(np.mean([score(counts) for counts in summed]))


def _drawn(score: float, draws: Floats) -> Drawn:
    low, high = np.quantile(draws, [0.025, 0.975])
    return Drawn(score=float(score), mean=float(draws.mean()), low=float(low), high=float(high))
