"""Is one contender better than another, or lucky with the test texts, or with its seeds?

One rule for every judge: bits per byte, BLEU, F1, accuracy. A contender is measured as `counts[s, i]`, (S, n, k): what
its judge counts in item i, for the model of seed s. A score is a function of the counts' sum over items, and the mean
over seeds. All contenders share the items, so that a difference d of two scores is paired.

Items come in documents, `documents[i]`: blocks of one text are alike, and what is tested is how models do on other
texts. So documents are resampled, never blocks: d_g is d without document g (the jackknife; Tukey 1958, Efron 1979),

    v_texts = (G - 1) / G · Σ_g (d_g - d)²            with G* - 1 degrees of freedom,   G* = (Σ n_g)² / Σ n_g²
    v_seeds = Σ s² / S                                with S - 1 each, a term for each contender

n_g is the number of items of document g, so that G* is G where documents are equally long (Kish 1965). s² is the
variance of one contender's scores over its S seeds; counting draws no random numbers and has no term. Then

    t = d / √v,   v = v_texts + v_seeds,   ν = v² / Σ (v_i² / ν_i)     (Welch 1947, Satterthwaite 1946)

is Student's: p is two-sided, and the interval d ± t(ν) √v leaves out zero just where p < 0.05. Over all pairs of a
comparison p is corrected by Holm (1979). A difference is settled where the corrected p is below 0.05, at least five
documents were tested, and at least three seeds of each model that draws random numbers: two of either tell so little
of a third that equal models would be called different in up to 12% of comparisons.

A single document is cut into ten stretches, each longer than texts are alike for; its interval is that of other
stretches of the same text, and settles nothing. What was measured on simulated and on real texts is in
docs/statistics.md (`benchmarks/calibration.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
Z_POWER = NormalDist().inv_cdf(0.8)
FEWEST_SEEDS = 3
FEWEST_DOCUMENTS = 5
MANY_DOCUMENTS = 20  # with fewer a report says that they are few
N_STRETCHES = 10  # of a single document
MAX_SEEDS, MAX_TEXTS = 50, 100  # nobody takes more seeds, or so many times the text

Counts = NDArray[Any]
Floats = NDArray[np.float64]
ScoreOfSum = Callable[[Counts], float]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A score or a difference with the variance that other texts, and other seeds, would give it."""

    value: float
    v_texts: float
    df_texts: float  # 0: of a single item nothing is known
    v_seeds: float = 0.0
    df_seeds: float = 1.0
    n_effective: float
    """So many independent items would tell as much."""

    @property
    def variance(self) -> float:
        return self.v_texts + self.v_seeds

    @property
    def df(self) -> float:
        parts = (self.v_texts**2 / self.df_texts if self.v_texts else 0.0) + self.v_seeds**2 / self.df_seeds
        return self.variance**2 / parts if parts else 1.0

    @property
    def p(self) -> float:
        """Two-sided, of a value of zero."""
        if not self.df_texts or math.isnan(self.variance):
            return 1.0
        if self.variance == 0:
            return float(self.value == 0)
        return student_p(self.value / math.sqrt(self.variance), self.df)

    @property
    def interval(self) -> tuple[float, float]:
        """In which the value lies with 95%."""
        half = student_t(self.df, LEVEL) * math.sqrt(self.variance)
        return self.value - half, self.value + half

    def detects(self, level: float) -> float:
        """The difference that is found in four of five comparisons at this level.

        It is δ √v with P(T > t(ν)) = Φ((δ - t (1 - 1/4ν)) / √(1 + t²/2ν)) = 0.8 for the non-central T (Abramowitz &
        Stegun 1964, 26.7.10). With t(ν) at 0.4 in place of Φ, as for many documents, 10 pairs and ν = 4 gave 0.73.
        """
        t = student_t(self.df, level)
        delta = t * (1 - 1 / (4 * self.df)) + Z_POWER * math.sqrt(1 + t**2 / (2 * self.df))
        return delta * math.sqrt(self.variance)

    def with_more_texts(self, n_times: float) -> Estimate:
        """As it would be with so many times the documents."""
        return replace(self, v_texts=self.v_texts / n_times, df_texts=self.df_texts * n_times)

    def with_more_seeds(self, now: int, then: int) -> Estimate:
        """As it would be with `then` seeds of each contender in place of `now`."""
        df_seeds = self.df_seeds * (then - 1) / (now - 1)
        return replace(self, v_seeds=self.v_seeds * now / then, df_seeds=df_seeds)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One contender's scores: of every seed, and how the mean over seeds changes without each document, each item."""

    seeds: Floats  # (S,)
    without_document: Floats  # (G,)
    without_item: Floats  # (n,)
    sizes: NDArray[np.int64]  # (G,), items of each document

    def __sub__(self, other: Sample) -> Estimate:
        """The difference of two scores on the same items."""
        return _estimate(
            float(self.seeds.mean() - other.seeds.mean()), self.without_document - other.without_document,
            self.without_item - other.without_item, self.sizes, [self.seeds, other.seeds],
        )  # fmt: skip

    @property
    def estimate(self) -> Estimate:
        """The mean score over seeds."""
        return _estimate(
            float(self.seeds.mean()), self.without_document, self.without_item, self.sizes, [self.seeds]
        )  # fmt: skip


def take_sample(score: ScoreOfSum, counts: Counts, documents: Sequence[int]) -> Sample:
    """Score every seed's counts, (S, n, k), whole and without each document."""
    groups = group_items(documents)
    sizes = np.bincount(groups)
    seeds = np.array([score(summed) for summed in counts.sum(axis=1)])
    without_document = np.zeros(1) if len(sizes) == 1 else _scores_without(score, counts, groups) - seeds.mean()
    without_item = without_document
    if len(sizes) < len(groups):
        without_item = _scores_without(score, counts, np.arange(len(groups))) - seeds.mean()
    return Sample(seeds=seeds, without_document=without_document, without_item=without_item, sizes=sizes)


def _estimate(value: float, documents: Floats, items: Floats, sizes: Any, seeds: Sequence[Floats]) -> Estimate:
    """Of the changes without each document and each item, and each contender's scores by seed."""
    n, v_texts, v_items = int(sizes.sum()), _jackknife(documents), _jackknife(items)
    terms = [(float(scores.var(ddof=1)) / len(scores), len(scores) - 1) for scores in seeds if len(scores) > 1]
    v_seeds = sum(v for v, _ in terms)
    return Estimate(
        value=value,
        v_texts=v_texts,
        df_texts=max(1.0, n**2 / float((sizes**2).sum()) - 1) if n > 1 else 0.0,
        v_seeds=v_seeds,
        df_seeds=v_seeds**2 / sum(v**2 / df for v, df in terms) if v_seeds > 0 else 1.0,
        n_effective=n * min(1.0, v_items / v_texts) if v_texts > 0 else float(n),
    )


def _jackknife(changes: Floats) -> float:
    return float((changes**2).sum() * (len(changes) - 1) / len(changes))


def _scores_without(score: ScoreOfSum, counts: Counts, groups: NDArray[np.int64]) -> Floats:
    """(G,): the mean score over seeds without each group of items."""
    sums = np.zeros((len(counts), int(groups.max()) + 1, counts.shape[2]), dtype=counts.dtype)
    for s, each in enumerate(counts):
        np.add.at(sums[s], groups, each)
    rest = counts.sum(axis=1, keepdims=True) - sums  # (S, G, k)
    scores = np.array([[score(summed) for summed in seed] for seed in rest])
    return np.asarray(scores.mean(axis=0))


def group_items(documents: Sequence[int]) -> NDArray[np.int64]:
    """The group that each item is left out with: its document; of a single document, one of ten stretches.

    >>> group_items([7, 7, 9]).tolist(), group_items([4] * 20).tolist()[:5]
    ([0, 0, 1], [0, 0, 1, 1, 2])
    """
    groups = np.unique(documents, return_inverse=True)[1]
    if groups.max(initial=0) == 0:
        return np.asarray(np.arange(len(groups)) * min(N_STRETCHES, len(groups)) // max(1, len(groups)))
    return np.asarray(groups)


def why_unsettled(n_documents: int, n_seeds: Sequence[int]) -> str:
    """What forbids calling any difference settled; empty where nothing does.

    `n_seeds` are those of the contenders that draw random numbers.
    """
    if n_documents == 1:
        return "one text was tested: another may say otherwise"
    if n_documents < FEWEST_DOCUMENTS:
        return f"{n_documents} documents: {FEWEST_DOCUMENTS} are needed to know how much they differ"
    fewest = min(n_seeds, default=FEWEST_SEEDS)
    if fewest == 1:
        return "one seed: other seeds were not tried"
    return "" if fewest >= FEWEST_SEEDS else f"{fewest} seeds: {FEWEST_SEEDS} are needed to know how much they differ"


def share_interval(n: int, is_all: bool) -> tuple[float, float]:
    """In which a share lies with 95%, in per cent, where all of n items have it, or none has (Clopper & Pearson 1934).

    Such items say nothing of their variance; but a share below (α/2)^(1/n) would show n of n in less than α/2 of cases.

    >>> [round(bound, 1) for bound in share_interval(12, is_all=True)], share_interval(1000, is_all=False)[0]
    ([73.5, 100.0], 0.0)
    """
    least = 100 * (LEVEL / 2) ** (1 / n)
    return (least, 100.0) if is_all else (0.0, 100 - least)


def correct_by_holm(ps: Sequence[float]) -> list[float]:
    """p of every pair, corrected for how many pairs there are (Holm 1979).

    The smallest is taken times the number of pairs, the next one times one less, and none is below the one before:

    >>> correct_by_holm([0.03, 0.01, 0.04])
    [0.06, 0.03, 0.06]
    """
    found, highest = [0.0] * len(ps), 0.0
    for place, i in enumerate(np.argsort(ps, kind="stable").tolist()):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[i]))
        found[i] = highest
    return found


def student_p(t: float, df: float) -> float:
    """The probability of a Student's T as far from zero as t, either way.

    With T = √df tan θ the density of θ is proportional to cos^(df - 1) θ, which is added up from t on (Gauss-Legendre).

    >>> [round(student_p(t, df), 4) for t, df in ((1.0, 1), (12.706, 1), (2.776, 4), (1.98, 120))]
    [0.5, 0.05, 0.05, 0.05]
    """
    df = min(df, 1000.0)  # from there on it is the normal distribution
    angle = math.atan2(abs(t), math.sqrt(df))
    half = (math.pi / 2 - angle) / 2
    tail = half * float(WEIGHTS @ np.cos(angle + half * (NODES + 1)) ** (df - 1))
    whole = math.sqrt(math.pi) / 2 * math.exp(math.lgamma(df / 2) - math.lgamma((df + 1) / 2))
    return min(1.0, tail / whole)


def student_t(df: float, p: float) -> float:
    """The t whose two-sided p is this.

    >>> [round(student_t(df, 0.05), 3) for df in (1, 2, 4.5, 30)]
    [12.706, 4.303, 2.659, 2.042]
    """
    low, high = 0.0, 1.0
    while student_p(high, df) > p:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if student_p(middle, df) > p else (low, middle)
    return high


NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def tell_power(pairs: Sequence[tuple[Estimate, Sequence[int]]], n_documents: int, write: Callable[[float], str]) -> str:
    """What differences a comparison can settle, and what it takes to settle half of that.

    `pairs` are differences, each with the numbers of seeds of those of the two that have seeds. Of the pairs that can
    be settled the one in the middle stands for all. `write` writes a difference in the judge's unit.
    """
    able = [pair for pair in pairs if not why_unsettled(n_documents, pair[1])]
    if not able:
        why = why_unsettled(n_documents, [n for _, n_seeds in pairs for n in n_seeds])
        return f"Nothing can be settled here ({why})."
    level = LEVEL / len(pairs)  # what Holm asks of the first
    middle, n_seeds = sorted(able, key=lambda pair: pair[0].detects(level))[len(able) // 2]
    least = middle.detects(level)
    now = min(n_seeds, default=1)
    seeds = f"With {now} seeds this" if n_seeds else "This"
    start = f"{seeds} comparison detects differences of {write(least)} or more in four of five cases"
    for n in range(now + 1, MAX_SEEDS + 1) if n_seeds else ():
        if middle.with_more_seeds(now, n).detects(level) <= least / 2:
            return f"{start}; for {write(least / 2)} take {n} seeds."
    hint = ": more seeds do not help" if n_seeds else ""
    for n in range(2, MAX_TEXTS + 1):
        if middle.with_more_texts(n).detects(level) <= least / 2:
            return f"{start}; for {write(least / 2)} take {n} times as many test documents{hint}."
    return f"{start}; for {write(least / 2)} take more seeds and more test documents."


def explain(n_documents: int, n_items: int, items: str, n_seeds: Sequence[int]) -> tuple[str, str]:
    """How the intervals and p were made, in words; `n_seeds` are those of every contender that has seeds.

    >>> explain(24, 100, "blocks of text", [3, 3])[0]
    "95%, by Student's t over 24 documents (jackknife) and 3 seeds"
    """
    texts = f"{n_documents:,} documents" if n_documents < n_items else f"{n_items:,} {items}"
    if n_documents == 1:
        texts = f"{min(N_STRETCHES, n_items)} stretches of one text"
    seeds, together = "", ""
    if n_seeds:
        several = f" and {' to '.join(str(n) for n in sorted({min(n_seeds), max(n_seeds)}))} seeds"
        seeds = several if max(n_seeds) > 1 else "; other seeds were not tried"
        together = " and seeds together" * (max(n_seeds) > 1)
    return (
        f"95%, by Student's t over {texts} (jackknife){seeds}",
        f"two-sided, by Student's t over {texts}{together}, corrected for the number of pairs (Holm 1979); settled "
        f"means p < 0.05, {FEWEST_DOCUMENTS} documents or more, and {FEWEST_SEEDS} seeds or more of what has seeds",
    )
