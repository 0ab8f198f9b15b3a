"""What an estimator makes of counts: a probability and a back-off weight for each n-gram, in nats.

With m the length of the context h = w_1 .. w_m and h' = w_2 .. w_m the same context without its oldest word,

    log P(w | h) = log_probs[m][h w]                        where the n-gram h w is stored
                   log_backoffs[m-1][h] + log P(w | h')     where only h is stored
                   log P(w | h')                            where h is not

is how every n-gram model of this room, and every ARPA file, is read. The estimators differ in the numbers they store.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from regard.count.counts import Bools, Floats


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
