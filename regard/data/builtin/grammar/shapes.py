"""The shapes that scenes are drawn from: each is a set of points of the square -1 ≤ x, y ≤ 1, with y upwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Mask = NDArray[np.bool_]


def _disc(x: Points, y: Points, centre: tuple[float, float] = (0.0, 0.0), radius: float = 1.0) -> Mask:
    return (x - centre[0]) ** 2 + (y - centre[1]) ** 2 <= radius**2


def _polygon(x: Points, y: Points, corners: Sequence[tuple[float, float]]) -> Mask:
    """Inside, where a ray to the right crosses the outline an odd number of times."""
    inside = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if y0 != y1:
            crosses = (y0 > y) != (y1 > y)
            inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside


def _box(x: Points, y: Points, left: float, right: float, low: float, high: float) -> Mask:
    return (x >= left) & (x <= right) & (y >= low) & (y <= high)


def _star(x: Points, y: Points) -> Mask:
    turns = np.pi / 2 + np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2 == 0, 1.0, 0.42)
    return _polygon(x, y, list(zip(radii * np.cos(turns), radii * np.sin(turns), strict=True)))


def _cross(x: Points, y: Points) -> Mask:
    return _box(x, y, -0.3, 0.3, -1, 1) | _box(x, y, -1, 1, -0.3, 0.3)


def _arrow(x: Points, y: Points) -> Mask:
    return _box(x, y, -1, 0.2, -0.22, 0.22) | _polygon(x, y, [(0.1, -0.75), (0.1, 0.75), (1.0, 0.0)])


def _cloud(x: Points, y: Points) -> Mask:
    puffs = [((-0.5, -0.2), 0.48), ((0.0, 0.1), 0.6), ((0.55, -0.2), 0.44)]
    base = _box(x, y, -0.6, 0.6, -0.65, -0.2)
    for centre, radius in puffs:
        base |= _disc(x, y, centre, radius)
    return base


def _fish(x: Points, y: Points) -> Mask:
    body = ((x - 0.2) / 0.8) ** 2 + (y / 0.5) ** 2 <= 1
    tail = _polygon(x, y, [(-0.4, 0.0), (-1.0, 0.55), (-1.0, -0.55)])
    return (body | tail) & ~_disc(x, y, (0.6, 0.15), 0.1)


def _flag(x: Points, y: Points) -> Mask:
    return _box(x, y, -0.8, -0.62, -1, 1) | _box(x, y, -0.62, 0.9, 0.0, 0.95)


SHAPES: dict[str, Callable[[Points, Points], Mask]] = {
    "circle": _disc,
    "square": lambda x, y: _box(x, y, -0.9, 0.9, -0.9, 0.9),
    "triangle": lambda x, y: _polygon(x, y, [(-1.0, -0.85), (1.0, -0.85), (0.0, 0.95)]),
    "star": _star,
    "cross": _cross,
    "ring": lambda x, y: _disc(x, y) & ~_disc(x, y, radius=0.55),
    "arrow": _arrow,
    "diamond": lambda x, y: np.abs(x) / 0.75 + np.abs(y) <= 1,
    "moon": lambda x, y: _disc(x, y) & ~_disc(x, y, (0.5, 0.15), 0.85),
    "cloud": _cloud,
    "fish": _fish,
    "flag": _flag,
}
