"""How sure the ranking is: intervals over texts and seeds, and a paired test between neighbours.

A contender is measured as `nats[s, b]`: the sum of -log p over block b of the test text, for the model of seed s. All
contenders share the blocks, and every block is the same text for all of them, so that differences can be paired.
Two things are random, which text was drawn and which seeds, and an interval has a part for each:

    half width = √(h_text² + h_seed²),   h_text = t(B - 1) σ_text,   h_seed = t(ν) √Σ v,   v = s² / S

σ_text is the standard deviation of the score over bootstrap draws of the B blocks (Efron 1979), times √(B / (B - 1)).
s² is the unbiased variance of one contender's scores over its S seeds; a difference has one v for each contender. t is
Student's quantile, ν the degrees of freedom of Σ v (Welch 1947, Satterthwaite 1946). Counting draws no random numbers
and has no v; the variance of a gradient contender with one seed is unknown, and no order with it is called settled.

Measured on simulated models of 2 bits per byte (40 blocks, block noise 0.1%, seeds with a standard deviation of 1%):

    seeds                                        2      3      5
    equally good, called settled                2.1%   3.6%   3.9%     (5% or less is right; 2000 draws)
    equally good, one of them counted           3.6%   4.7%   4.0%
    5% apart, called settled                     41%    98%   100%     (500 draws)

A percentile bootstrap over seeds and blocks calls 33%, 18% and 11% of the equal pairs settled: S draws from S seeds
repeat themselves, so that it sees only (S - 1) / S of their variance, and knows nothing of how little S seeds tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

N_RESAMPLES = 10_000
MAX_EXACT_BLOCKS = 14  # 2^14 sign patterns are enumerated; beyond that they are drawn


@dataclass(frozen=True)
class Paired:
    """`difference` is bits per byte of the second minus the first: positive where the first is better."""

    difference: float
    low: float
    high: float
    p: float
    is_seed_known: bool

    @property
    def is_clear(self) -> bool:
        """The order holds over texts (p < 0.05) and over texts and seeds together (the interval leaves out zero)."""
        return self.is_seed_known and self.p < 0.05 and not (self.low <= 0.0 <= self.high)


def bits_per_byte(nats: Array, n_bytes: Array) -> float:
    """Mean over seeds of (nats of all blocks) / (bytes of all blocks x ln 2)."""
    return float(nats.mean(axis=0).sum() / (n_bytes.sum() * math.log(2)))


def interval(nats: Array, n_bytes: Array, *, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Of `bits_per_byte`, over texts and, where there are several, seeds."""
    middle = bits_per_byte(nats, n_bytes)
    half = _half_width(nats.mean(axis=0), [nats], n_bytes, confidence, seed)
    return max(0.0, middle - half), middle + half


def paired(
    first: Array,
    second: Array,
    n_bytes: Array,
    *,
    are_counted: tuple[bool, bool] = (False, False),
    confidence: float = 0.95,
    seed: int = 0,
) -> Paired:
    """Compare two contenders on the same blocks; `are_counted` says which of them have no seeds to vary.

    The p-value is over texts alone, of a sign-flip test on the blocks' differences (Fisher 1935): were the two equally
    good on this kind of text, each difference would be as likely to point the other way. Seeds count in the interval,
    each contender's on their own, since equal seed numbers mean nothing across architectures.
    """
    gaps = second.mean(axis=0) - first.mean(axis=0)  # (B,)
    difference = bits_per_byte(gaps[None], n_bytes)
    half = _half_width(gaps, [first, second], n_bytes, confidence, seed)
    return Paired(
        difference,
        difference - half,
        difference + half,
        sign_flip_p(gaps, seed=seed),
        all(c or len(nats) > 1 for c, nats in zip(are_counted, (first, second), strict=True)),
    )


def sign_flip_p(differences: Array, *, seed: int = 0) -> float:
    """Two-sided p: the share of sign patterns whose |sum| is at least the one seen.

    Of the 8 patterns of ±1 ±2 ±3 only the two with equal signs reach 6:

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    n = differences.size
    if n <= MAX_EXACT_BLOCKS:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1  # (2^n, n), all of them
        n_more = 0
    else:
        patterns = np.random.default_rng(seed).integers(0, 2, size=(N_RESAMPLES, n))
        n_more = 1  # the pattern that was seen counts too, so that p is never zero
    sums = np.abs((2 * patterns - 1) @ differences)
    seen = abs(differences.sum())
    n_extreme = int((sums >= seen * (1 - 1e-12)).sum())
    return (n_extreme + n_more) / (len(patterns) + n_more)


def student_t(df: float, confidence: float) -> float:
    """The t that |T| stays under with this probability.

    With T = √df tan θ the density of θ is proportional to cos^(df - 1) θ, which is added up on a grid.

    >>> [round(student_t(df, 0.95), 3) for df in (1, 2, 4.5, 30)]
    [12.706, 4.303, 2.659, 2.042]
    """
    angles = np.linspace(0, math.pi / 2, 20_001)
    shares = np.cumsum(np.cos((angles[:-1] + angles[1:]) / 2) ** (df - 1))
    return math.sqrt(df) * math.tan(np.interp(confidence * shares[-1], shares, angles[1:]))


def _half_width(mean_nats: Array, contenders: list[Array], n_bytes: Array, confidence: float, seed: int) -> float:
    """√(h_text² + h_seed²), see above; `mean_nats` (B,) is what the score is made of, `contenders` (S, B) its seeds."""
    n_blocks = n_bytes.size
    blocks = np.random.default_rng(seed).multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=N_RESAMPLES)
    drawn = (blocks @ mean_nats) / ((blocks @ n_bytes) * math.log(2))  # (R,) bits per byte
    text = student_t(n_blocks - 1, confidence) * float(drawn.std()) * math.sqrt(n_blocks / (n_blocks - 1))
    v, df = np.array([_seed_variance(nats, n_bytes) for nats in contenders if len(nats) > 1]).reshape(-1, 2).T
    if not v.sum() > 0:
        return text
    return math.hypot(text, student_t(v.sum() ** 2 / (v**2 / df).sum(), confidence) * math.sqrt(v.sum()))


def _seed_variance(nats: Array, n_bytes: Array) -> tuple[float, int]:
    """Of the mean score over seeds, and its degrees of freedom."""
    scores = nats.sum(axis=1) / (n_bytes.sum() * math.log(2))  # (S,)
    return float(scores.var(ddof=1)) / len(scores), len(scores) - 1
