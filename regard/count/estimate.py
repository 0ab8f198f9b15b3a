"""What an estimator makes of counts: a probability and a back-off weight for each n-gram, in nats.

With m the length of the context h = w_1 .. w_m and h' = w_2 .. w_m the same context without its oldest word,

    log P(w | h) = log_probs[m][h w]                        where the n-gram h w is stored
                   log_backoffs[m-1][h] + log P(w | h')     where only h is stored
                   log P(w | h')                            where h is not

is how every n-gram model of this room, and every ARPA file, is read. The estimators differ in the numbers they store.
Those that divide counts by counts are here; c(h w) is how often w followed the context h, and c(h) = Σ_w c(h w).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from regard.count.counts import Bools, Floats, Index, Level


@dataclass(frozen=True)
class Estimate:
    """Numbers beside the keys of each level; `log_backoffs` has no last level, where no n-gram is a context."""

    log_probs: list[Floats]
    log_backoffs: list[Floats]
    discounts: Floats = field(default_factory=lambda: np.zeros((0, 3)))  # (N, 3): D_1, D_2, D_3+ (Kneser-Ney only)
    discounts_estimated: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))  # (N,) False: the fallback


def log(probabilities: Floats) -> Floats:
    """Natural logarithm with log 0 = -inf and no warning: an impossible token is an answer, not a mistake."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(probabilities)
    return logs


def estimate_mle(levels: Sequence[Level], vocab_size: int) -> Estimate:
    """Maximum likelihood: P(w | h) = c(h w) / c(h).

    A word never seen after h is impossible: the back-off weight of every context is 0. A context that was never seen
    has no estimate, so the longest part of it that was seen speaks instead.
    """
    log_probs, log_backoffs = [], []
    n_contexts = 1
    for n, level in enumerate(levels, start=1):
        h, c_h = _contexts(level, vocab_size, n_contexts)
        P = level.counts / c_h[h]
        if n == 1:
            P[vocab_size] = 1.0  # <s> is given, never predicted
        else:
            log_backoffs.append(np.where(c_h > 0, -np.inf, 0.0))
        log_probs.append(log(P))
        n_contexts = len(level.keys)
    return Estimate(log_probs, log_backoffs)


def estimate_add_k(levels: Sequence[Level], vocab_size: int, k: float) -> Estimate:
    """Add-k (Lidstone 1920; k = 1 is Laplace's): P(w | h) = (c(h w) + k) / (c(h) + k V).

    h is the whole context, N - 1 tokens or all there are since `<s>`. Written for back-off, unseen words share
    gamma(h) = k V / (c(h) + k V) evenly:

        P(w | h) = gamma(h) / V   where c(h w) = 0,   and   P(w | h) = 1 / V   where c(h) = 0

    so an n-gram that is shorter than a whole context allows (n < N, not after `<s>`) stores 1 / V, and its context
    the back-off weight 1.
    """
    V, N = vocab_size, len(levels)
    log_probs, log_backoffs = [], []
    n_contexts = 1
    for n, level in enumerate(levels, start=1):
        h, c_h = _contexts(level, vocab_size, n_contexts)
        P = (level.counts + k) / (c_h[h] + k * V)
        gamma = k * V / (c_h + k * V)
        if n < N:
            P[: level.n_inside] = 1 / V
        if n > 1 and n < N:
            gamma[: levels[n - 2].n_inside] = 1.0
        if n == 1:
            P[V] = 1.0  # <s> is given, never predicted
        else:
            log_backoffs.append(log(gamma))
        log_probs.append(log(P))
        n_contexts = len(level.keys)
    return Estimate(log_probs, log_backoffs)


def _contexts(level: Level, vocab_size: int, n_contexts: int) -> tuple[Index, Floats]:
    """h, the context of each n-gram, and c(h), the count of each context."""
    h = level.keys // (vocab_size + 1)
    return h, np.bincount(h, weights=level.counts, minlength=n_contexts).astype(np.float64)
