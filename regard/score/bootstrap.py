"""Is one contender better than another, or lucky with the test items, or with its seed?

A contender is measured as `counts[s, i]`, (S, n, k): what its judge counts in item i, for the model of seed s. All
contenders share the items, so that differences can be paired. A score is a function of the counts' sum over items, and
the mean over seeds. Draw n of the n items with replacement, R times (Efron 1979): d_r is the score, or the difference
of two scores, on draw r, and d the one on the items as they are.

    items that are sentences or pictures                   items that are blocks of one text
    over items   the middle 95% of d_r                     d ± t(n - 1) · std(d_r) · √(n / (n - 1))
    p            (1 + #{|d_r| - mean |d_r| >= |d|})        sign flips of the blocks' differences (Fisher 1935)
                 / (R + 1)   (Koehn 2004, sacreBLEU)
    settled      p < 0.05 and an interval without zero     the same, and two seeds at least of what draws random numbers

Where a contender has several seeds, each half of the interval becomes

    √(h_items² + h_seeds²),   h_seeds = t(ν) √Σ v,   v = s² / S

s² is the unbiased variance of one contender's scores over its S seeds; a difference has one v for each contender. t is
Student's quantile, ν the degrees of freedom of Σ v (Welch 1947, Satterthwaite 1946). Counting draws no random numbers
and has no v.

Of blocks this was measured on simulated models of 2 bits per byte (40 blocks, block noise 0.1%, seeds with a standard
deviation of 1%):

    seeds                                        2      3      5
    equally good, called settled                2.1%   3.6%   3.9%     (5% or less is right; 2000 draws)
    equally good, one of them counted           3.6%   4.7%   4.0%
    5% apart, called settled                     41%    98%   100%     (500 draws)

A percentile bootstrap over seeds and blocks calls 33%, 18% and 11% of the equal pairs settled: S draws from S seeds
repeat themselves, so that it sees only (S - 1) / S of their variance, and knows nothing of how little S seeds tell.

sacreBLEU's `PairedTest` takes its seed from the environment and gives no interval of the difference, so the draws are
made here, the same ones for the same seed. There, ties do not count, so that a system compared with itself gets the
smallest p there is; here it gets 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

from regard.errors import RegardError
from regard.score.judges import Counts, Judge
from regard.score.translation import References, bleu_metric, chrf_metric, score_by, statistics_of

SEED = 12345  # sacreBLEU's
CONFIDENCE = 0.95
ITEM_DRAWS = 1000
BLOCK_DRAWS = 10_000
MAX_EXACT_BLOCKS = 14  # 2^14 sign patterns are enumerated; beyond that they are drawn
BLOCK = 2**20  # items drawn at a time: memory stays at some megabytes however many there are

Floats = NDArray[np.float64]
ScoreOfSum = Callable[[Counts], float]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A score on the items as they are, its mean over the draws, and what holds 95% of the draws."""

    score: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PairTest:
    """Two contenders on the same items; `difference` is by how much the first is ahead, in its measure."""

    difference: float
    low: float
    high: float
    p: float
    wins: float  # share of the draws in which the first is ahead
    is_clear: bool


def score_with_interval(judge: Judge, counts: Counts) -> Drawn:
    """The mean score over seeds with its 95% interval over items and, where there are several, seeds."""
    score = _mean_score(judge.score, counts.sum(axis=1))
    drawn = _scores_of_draws(judge.score, [counts], *_draws_for(judge))[:, 0]
    found = _spread(judge, score, drawn, counts.shape[1])
    low, high = widen(found, [_scores_of_seeds(judge, counts)])
    return dataclasses.replace(found, low=max(0.0, low), high=high)


def compare_pair(judge: Judge, better: Counts, worse: Counts, *, have_seeds: tuple[bool, bool]) -> PairTest:
    """Whether the first is better; `have_seeds` says of which another seed would give another model.

    Seeds count in the interval, each contender's on their own, since equal seed numbers mean nothing across models.
    """
    sides, sign = [better, worse], 1.0 if judge.is_higher_better else -1.0
    first, second = (_mean_score(judge.score, side.sum(axis=1)) for side in sides)
    drawn = _scores_of_draws(judge.score, sides, *_draws_for(judge))
    gaps, difference = sign * (drawn[:, 0] - drawn[:, 1]), sign * (first - second)
    found = _spread(judge, difference, gaps, better.shape[1])
    low, high = widen(found, [_scores_of_seeds(judge, side) for side in sides])
    if judge.are_blocks:
        p = sign_flip_p(worse[:, :, 0].mean(axis=0) - better[:, :, 0].mean(axis=0))
    else:
        p = p_value(gaps, difference)
    is_known = not judge.are_blocks or all(not has or len(c) > 1 for has, c in zip(have_seeds, sides, strict=True))
    is_clear = is_known and p < 0.05 and not low <= 0.0 <= high
    return PairTest(difference=difference, low=low, high=high, p=p, wins=float((gaps > 0).mean()), is_clear=is_clear)


def explain(judge: Judge, n_items: int, n_seeds: int, items: str) -> tuple[str, str]:
    """How the interval and p were made, in words."""
    if not judge.are_blocks:
        settled = "settled means p < 0.05 and an interval of the difference that leaves out zero"
        return (
            f"95% of {ITEM_DRAWS:,} draws of the test {items} (Koehn 2004)",
            f"paired bootstrap over the test {items}, as in sacreBLEU's --paired-bs; {settled}",
        )
    seeds = "; one seed: other seeds were not tried, so luck of the seed is not in it"
    if n_seeds > 1:
        seeds = f" and the variance over {n_seeds} seeds with Student's t"
    return (
        f"95%, from a bootstrap over {n_items} {items}{seeds}",
        "sign-flip test on the blocks' differences; settled means p < 0.05 and an interval of the difference, over "
        "blocks and seeds, that leaves out zero; one seed of a trained model settles nothing",
    )


def widen(drawn: Drawn, seeds: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The interval of a score, or of a difference, with what other seeds would give.

    `seeds` are the scores of each contender's runs.
    """
    several = [np.asarray(scores) for scores in seeds if len(scores) > 1]
    v = np.array([scores.var(ddof=1) / len(scores) for scores in several])
    if not v.sum() > 0:
        return drawn.low, drawn.high
    df = v.sum() ** 2 / sum(each**2 / (len(scores) - 1) for each, scores in zip(v, several, strict=True))
    h = student_t(df, CONFIDENCE) * math.sqrt(v.sum())
    low, high = math.hypot(drawn.score - drawn.low, h), math.hypot(drawn.high - drawn.score, h)
    return drawn.score - low, drawn.score + high


def sign_flip_p(differences: Floats, *, seed: int = 0) -> float:
    """Two-sided p: the share of sign patterns whose |sum| is at least the one seen.

    Were two models equally good on this kind of text, each difference would be as likely to point the other way. Of
    the 8 patterns of ±1 ±2 ±3 only the two with equal signs reach 6:

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    n = differences.size
    if n <= MAX_EXACT_BLOCKS:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1  # (2^n, n), all of them
        n_more = 0
    else:
        patterns = np.random.default_rng(seed).integers(0, 2, size=(BLOCK_DRAWS, n))
        n_more = 1  # the pattern that was seen counts too, so that p is never zero
    sums = np.abs((2 * patterns - 1) @ differences)
    n_extreme = int((sums >= abs(differences.sum()) * (1 - 1e-12)).sum())
    return (n_extreme + n_more) / (len(patterns) + n_more)


def p_value(gaps: Floats, difference: float) -> float:
    """Koehn's p of the differences d_r over the draws and the one on all items.

    |d_r| is 1, 1, 1 and 5, 2 in the mean, so that one draw in four lies 2 or more above it:

    >>> p_value(np.array([1.0, -1.0, 1.0, 5.0]), 2.0)
    0.4
    """
    sizes = np.abs(gaps)
    return float((1 + int((sizes - sizes.mean() >= abs(difference)).sum())) / (len(gaps) + 1))


def student_t(df: float, confidence: float) -> float:
    """The t that |T| stays under with this probability.

    With T = √df tan θ the density of θ is proportional to cos^(df - 1) θ, which is added up on a grid.

    >>> [round(student_t(df, 0.95), 3) for df in (1, 2, 4.5, 30)]
    [12.706, 4.303, 2.659, 2.042]
    """
    angles = np.linspace(0, math.pi / 2, 20_001)
    shares = np.cumsum(np.cos((angles[:-1] + angles[1:]) / 2) ** (df - 1))
    return math.sqrt(df) * math.tan(np.interp(confidence * shares[-1], shares, angles[1:]))


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
    n_draws: int = ITEM_DRAWS,
    seed: int = SEED,
) -> PairedBootstrap:
    """Compare two systems' hypotheses for the same references, by `bleu`, whose `tokenizer` it is, or `chrf`."""
    if metric not in ("bleu", "chrf"):
        raise RegardError(f"The metric must be bleu or chrf, not '{metric}'.")
    if n_draws < 100:
        raise RegardError(f"{n_draws} draws are too few for an interval of 95%: give n_draws of at least 100.")
    scorer: Metric = bleu_metric(tokenizer=tokenizer) if metric == "bleu" else chrf_metric()
    sides = [statistics_of(scorer, hypotheses, references)[None] for hypotheses in (first, second)]
    score = score_by(scorer)
    scores = [score(side[0].sum(axis=0)) for side in sides]
    drawn = _scores_of_draws(score, sides, n_draws, seed, False)  # (R, 2)
    gaps = drawn[:, 1] - drawn[:, 0]
    return PairedBootstrap(
        metric=metric,
        signature=str(scorer.get_signature()),
        first=_middle(scores[0], drawn[:, 0]),
        second=_middle(scores[1], drawn[:, 1]),
        difference=_middle(scores[1] - scores[0], gaps),
        p=p_value(gaps, scores[1] - scores[0]),
        wins=float((gaps > 0).mean()),
        n_sentences=sides[0].shape[1],
        n_draws=n_draws,
        seed=seed,
    )


def _draws_for(judge: Judge) -> tuple[int, int, bool]:
    """How many draws, their seed, and whether they are of blocks."""
    return (BLOCK_DRAWS, 0, True) if judge.are_blocks else (ITEM_DRAWS, SEED, False)


def _scores_of_draws(score: ScoreOfSum, sides: list[Counts], n_draws: int, seed: int, are_blocks: bool) -> Floats:
    """(R, sides): mean scores over seeds, of the same draws for every side."""
    draws = np.random.default_rng(seed)
    n = sides[0].shape[1]
    scores = np.empty((n_draws, len(sides)))
    per_part = n_draws if are_blocks else max(1, BLOCK // n)
    for start in range(0, n_draws, per_part):
        n_rows = min(per_part, n_draws - start)
        if are_blocks:
            times = draws.multinomial(n, np.full(n, 1 / n), size=n_rows)
        else:  # as sacreBLEU draws them
            rows = draws.choice(n, size=(n_rows, n), replace=True)
            times = np.stack([np.bincount(row, minlength=n) for row in rows])  # (r, n), how often each item came
        for i, side in enumerate(sides):
            summed = np.stack([times @ counts for counts in side], axis=1)  # (r, S, k)
            scores[start : start + n_rows, i] = [_mean_score(score, each) for each in summed]
    return scores


def _mean_score(score: ScoreOfSum, summed: Counts) -> float:
    """Over seeds, (S, k)."""
    return float(np.mean([score(counts) for counts in summed]))


def _scores_of_seeds(judge: Judge, counts: Counts) -> list[float]:
    return [judge.score(each.sum(axis=0)) for each in counts]


def _spread(judge: Judge, score: float, draws: Floats, n_items: int) -> Drawn:
    """The score with its interval over items alone."""
    if not judge.are_blocks:
        return _middle(score, draws)
    half = student_t(n_items - 1, CONFIDENCE) * float(draws.std()) * math.sqrt(n_items / (n_items - 1))
    return Drawn(score=score, mean=float(draws.mean()), low=score - half, high=score + half)


def _middle(score: float, draws: Floats) -> Drawn:
    low, high = np.quantile(draws, [0.025, 0.975])
    return Drawn(score=float(score), mean=float(draws.mean()), low=float(low), high=float(high))
