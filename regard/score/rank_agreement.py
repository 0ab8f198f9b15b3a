"""How far two orders of the same things agree: Kendall's τ_b."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def kendall_tau(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """τ_b = (C - D) / √((n_0 - n_x)(n_0 - n_y)) (Kendall 1945).

    C and D count the pairs that both put in the same, or in opposite order; n_0 is the number of pairs, n_x and n_y how
    many of these are ties in x and in y. nan where all of one are tied, or there are fewer than two.

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.3333333333333333
    """
    first, second = np.triu_indices(len(x), k=1)
    a, b = np.sign(x[first] - x[second]), np.sign(y[first] - y[second])
    n_a, n_b = int((a != 0).sum()), int((b != 0).sum())
    return float((a * b).sum() / math.sqrt(n_a * n_b)) if n_a and n_b else math.nan
