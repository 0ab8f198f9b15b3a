"""Interpolated modified Kneser-Ney smoothing (Kneser & Ney 1995; Chen & Goodman 1999), as KenLM estimates it.

The adjusted count of an n-gram is its count at the highest order N, and below that the number of different words seen
before it, because a shorter n-gram is only asked when the longer one failed. Nothing can stand before `<s>`, so
n-grams that begin with it keep their count:

    a(w_1 .. w_n) = c(w_1 .. w_n)                         if n = N or w_1 = <s>
                    |{v : c(v w_1 .. w_n) > 0}|           otherwise

Each order has three discounts, from t_j = the number of its n-grams with a = j, j = 1 .. 4:

    y = t_1 / (t_1 + 2 t_2),   D_j = j - (j + 1) y t_{j+1} / t_j   for j = 1, 2, 3;   D(a) = D_min(a, 3),  D(0) = 0

What is taken away from the words seen after a context h is given to the next shorter context h':

    total(h)  = Σ_w a(h w)
    gamma(h)  = Σ_w D(a(h w)) / total(h)
    P(w | h)  = (a(h w) - D(a(h w))) / total(h) + gamma(h) P(w | h'),   ending in the uniform 1 / V

gamma is the back-off weight of h in an ARPA file; V counts every token but `<s>`, `<unk>` among them. These are the
equations of Heafield, Pouzyrevsky, Clark & Koehn (2013), without pruning.

Where D cannot be estimated (t_1, t_2 or t_3 is zero, or a D is not positive), the order takes FALLBACK, which is
KenLM's --discount_fallback. KenLM accepts D = 0; that could leave nothing for unseen words, so here it falls back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.count.counts import Floats, Index, Level
from regard.count.estimate import Estimate, log

FALLBACK = (0.5, 1.0, 1.5)


def estimate_kneser_ney(levels: Sequence[Level], vocab_size: int) -> Estimate:
    """Probabilities and back-off weights of all n-grams, from the shortest up."""
    log_probs, log_backoffs, all_D, all_estimated = [], [], [], []
    P, n_contexts = np.full(1, 1 / vocab_size), 1  # order 0: the uniform distribution, under the one empty context
    for n, level in enumerate(levels, start=1):
        a = adjust_counts(levels, n)
        D, is_estimated = estimate_discounts(a)
        taken = D[np.minimum(a, 3)]
        h = level.keys // (vocab_size + 1)
        total = np.bincount(h, weights=a, minlength=n_contexts)
        # A context that nothing followed (the end of a text that stops inside a sentence) hands everything on.
        gamma = np.ones(n_contexts)
        np.divide(np.bincount(h, weights=taken, minlength=n_contexts), total, out=gamma, where=total > 0)
        P = (a - taken) / total[h] + gamma[h] * P[level.suffixes]
        if n == 1:
            P[vocab_size] = 1.0  # <s> is given, never predicted
        else:
            log_backoffs.append(log(gamma))
        log_probs.append(log(P))
        n_contexts = len(level.keys)
        all_D.append(D[1:])
        all_estimated.append(is_estimated)
    return Estimate(log_probs, log_backoffs, np.array(all_D), np.array(all_estimated))


def adjust_counts(levels: Sequence[Level], n: int) -> Index:
    """a(w_1 .. w_n) for every n-gram of order n."""
    level = levels[n - 1]
    if n == len(levels):
        return level.counts
    a = np.bincount(levels[n].suffixes, minlength=len(level.keys))
    a[level.n_inside :] = level.counts[level.n_inside :]
    return a


def estimate_discounts(a: Index) -> tuple[Floats, bool]:
    """(0, D_1, D_2, D_3+) for one order, and whether its counts sufficed to estimate them.

    >>> estimate_discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4]))  # t = 4, 2, 1, 1, so y = 1/2
    (array([0.  , 0.5 , 1.25, 1.  ]), True)
    >>> estimate_discounts(np.array([1, 1, 5]))
    (array([0. , 0.5, 1. , 1.5]), False)
    """
    t = np.bincount(np.minimum(a, 5), minlength=6).astype(np.float64)
    j = np.array([1, 2, 3])
    if np.all(t[j] > 0):
        y = t[1] / (t[1] + 2 * t[2])
        D = j - (j + 1) * y * t[j + 1] / t[j]
        if np.all(D > 0):
            return np.array([0.0, *D]), True
    return np.array([0.0, *FALLBACK]), False
