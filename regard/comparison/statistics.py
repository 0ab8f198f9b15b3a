"""How sure the ranking is: bootstrap intervals, and a paired test between neighbours.

A contender is measured as `nats[s, b]`: the sum of -log p over block b of the test text, for the model of seed s. All
contenders share the blocks, and every block is the same text for all of them, so that differences can be paired.
Two things are random: which seed was drawn and which text was drawn. The bootstrap resamples both (Efron 1979; with
crossed factors, Owen 2007); with few seeds it is a little too narrow, since S draws from S seeds repeat themselves.
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

    @property
    def is_clear(self) -> bool:
        """The order holds over texts (p < 0.05) and over seeds and texts together (the interval leaves out zero)."""
        return self.p < 0.05 and not (self.low <= 0.0 <= self.high)


def bits_per_byte(nats: Array, n_bytes: Array) -> float:
    """Mean over seeds of (nats of all blocks) / (bytes of all blocks x ln 2)."""
    return float(nats.mean(axis=0).sum() / (n_bytes.sum() * math.log(2)))


def bootstrap_interval(nats: Array, n_bytes: Array, *, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """The percentile interval of `bits_per_byte` under resampled seeds and blocks."""
    rng = np.random.default_rng(seed)
    blocks = _draws(rng, n_bytes.size)
    return _percentiles(_resampled(rng, nats, n_bytes, blocks), confidence)


def paired(first: Array, second: Array, n_bytes: Array, *, confidence: float = 0.95, seed: int = 0) -> Paired:
    """Compare two contenders on the same blocks.

    The p-value is of a sign-flip test on the blocks' differences (Fisher 1935): were the two equally good, each
    difference would be as likely to point the other way. The interval also draws the seeds again, each contender's
    on their own, since equal seed numbers mean nothing across architectures.
    """
    rng = np.random.default_rng(seed)
    blocks = _draws(rng, n_bytes.size)  # the same blocks for both: this is what pairs them
    gaps = _resampled(rng, second, n_bytes, blocks) - _resampled(rng, first, n_bytes, blocks)
    low, high = _percentiles(gaps, confidence)
    p = sign_flip_p(second.mean(axis=0) - first.mean(axis=0), seed=seed)
    return Paired(bits_per_byte(second, n_bytes) - bits_per_byte(first, n_bytes), low, high, p)


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


def _draws(rng: np.random.Generator, n: int) -> Array:
    """(R, n): how often each of n things is drawn in R resamples of n with replacement."""
    return rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES).astype(np.float64)


def _resampled(rng: np.random.Generator, nats: Array, n_bytes: Array, blocks: Array) -> Array:
    """(R,) bits per byte under block counts `blocks` (R, B) and freshly drawn seeds."""
    n_seeds = nats.shape[0]
    seeds = _draws(rng, n_seeds) / n_seeds  # (R, S)
    totals = ((seeds @ nats) * blocks).sum(axis=1)  # (R,)
    return np.asarray(totals / ((blocks @ n_bytes) * math.log(2)))


def _percentiles(values: Array, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
