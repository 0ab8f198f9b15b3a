"""A few shapes that all batches are padded to: a GPU is prepared once for each.

Shapes that were seen are joined two by two, (a, b) to max(a, b) in each number, always the two that together gain the
least padding, until more would be gained than is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Numbers = NDArray[np.int64]
Cost = Callable[[Numbers], Numbers]
"""How many places shapes have; their numbers stand along the last axis."""

MAX_PADDING = 0.08
MAX_JOINED = 256
"""Shapes that are compared two by two; of more, the numbers after the first are rounded up before."""
MAX_SHAPES_SEEN = 1000
"""Batches whose shapes are looked at."""
N_ROWS = 8
"""The first number of a shape, rows as a rule, is a multiple of this."""
N_PLACES = 8
"""What the other numbers are rounded up to where a batch fits no shape."""


class FewShapes:
    """Finds the shape that a batch is padded to.

    >>> shapes = FewShapes([(8, 9), (8, 10), (8, 20)], lambda shape: shape.prod(-1))
    >>> [shapes.fit(shape) for shape in [(8, 9), (3, 8), (8, 11), (8, 21)]]
    [(8, 10), (8, 10), (8, 20), (8, 24)]
    """

    def __init__(self, seen: Sequence[Shape], cost: Cost) -> None:
        self._table = join_shapes(seen, cost)
        self._cost = cost(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def fit(self, shape: Shape) -> Shape:
        """The smallest that holds `shape`; where none does, `shape` with its numbers rounded up."""
        holds = (self._table >= np.array(shape)).all(axis=1)
        if not holds.any():
            return _round_up(np.array(shape), N_PLACES)
        return tuple(self._table[np.where(holds, self._cost, np.iinfo(np.int64).max).argmin()].tolist())


def join_shapes(seen: Sequence[Shape], cost: Cost, max_padding: float = MAX_PADDING) -> Numbers:
    """Few shapes, each seen one of which is held by one of them; together at most `max_padding` larger, if they can."""
    most = (1 + max_padding) * int(cost(np.array(seen)).sum())
    grain = 1
    while len(counts := Counter(_round_up(np.array(shape), grain) for shape in seen)) > MAX_JOINED:
        grain *= 2
    shapes, n = np.array(list(counts)), np.array(list(counts.values()))
    while len(shapes) > 1:
        joined = np.maximum(shapes[:, None], shapes[None])
        gained = cost(joined)[..., None] - np.stack(np.broadcast_arrays(cost(shapes)[:, None], cost(shapes)[None]), -1)
        price = (gained * np.stack(np.broadcast_arrays(n[:, None], n[None]), -1)).sum(-1)
        np.fill_diagonal(price, np.iinfo(np.int64).max)
        i, j = np.unravel_index(int(price.argmin()), price.shape)
        if int((n * cost(shapes)).sum() + price[i, j]) > most:
            break
        shapes[i], n[i] = joined[i, j], n[i] + n[j]
        shapes, n = np.delete(shapes, j, axis=0), np.delete(n, j)
    return shapes


def _round_up(shape: Numbers, grain: int) -> Shape:
    multiple = np.array([N_ROWS, *[grain] * (len(shape) - 1)])
    return tuple((-(-shape // multiple) * multiple).tolist())
