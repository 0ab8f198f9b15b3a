"""How often words stand near each other: a sparse symmetric matrix X, counted with sorting and no loop over words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

PIECE = 2**19
"""Words that are counted at a time: their pairs are held and sorted at once."""


@dataclass(frozen=True)
class Cooccurrence:
    """X_ij for the pairs that were seen, sorted by i, then j; X is symmetric."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    n_words: int


def count_cooccurrences(
    ids: NDArray[np.integer],
    n_words: int,
    window: int,
    *,
    is_harmonic: bool = False,
    segments: NDArray[np.integer] | None = None,
) -> Cooccurrence:
    """X_ij = Σ over the places of i of what the words j at most `window` words away count: 1, or 1/distance.

    Words of two different `segments` are never near each other.

    >>> found = count_cooccurrences(np.array([0, 1, 0]), 2, 1)
    >>> list(zip(found.rows.tolist(), found.columns.tolist(), found.values.tolist()))
    [(0, 1, 2.0), (1, 0, 2.0)]
    """
    if n_words > 2**31:
        raise RegardError(f"A vocabulary of {n_words:,} words is too large to count pairs of: 2^31 at most.")
    keys, sums = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
    for begin in range(0, len(ids), PIECE):
        piece = np.asarray(ids[begin : begin + PIECE + window], dtype=np.int64)
        apart = None if segments is None else segments[begin : begin + PIECE + window]
        for distance in range(1, min(window, len(piece) - 1) + 1):
            n = min(PIECE, len(piece) - distance)  # the first of a pair lies in this piece
            pairs = piece[:n] * n_words + piece[distance : distance + n]
            if apart is not None:
                pairs = pairs[apart[:n] == apart[distance : distance + n]]
            found, counts = np.unique(pairs, return_counts=True)
            keys, sums = _add(keys, sums, found, counts / (distance if is_harmonic else 1.0))
    # What was counted is how often j follows i; the other direction is its transpose.
    rows, columns = np.divmod(keys, n_words)
    back = np.argsort(columns * n_words + rows, kind="stable")
    keys, sums = _add(keys, sums, (columns * n_words + rows)[back], sums[back])
    rows, columns = np.divmod(keys, n_words)
    return Cooccurrence(rows, columns, sums, n_words)


def _add(
    keys: NDArray[np.int64], sums: NDArray[np.float64], more: NDArray[np.int64], counts: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Two sorted lists of keys with numbers as one, numbers of equal keys added."""
    if not len(keys):
        return more, counts
    both, values = np.concatenate([keys, more]), np.concatenate([sums, counts])
    order = np.argsort(both, kind="stable")  # two sorted runs: merged in one pass
    both, values = both[order], values[order]
    is_first = np.concatenate([[True], both[1:] != both[:-1]])
    return both[is_first], np.add.reduceat(values, np.flatnonzero(is_first))
