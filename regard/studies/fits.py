"""What is read off a curve: exponents, half-lives, reach, and how sure a share is."""

from __future__ import annotations

import math
from collections.abc import Sequence


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The least-squares slope of y over x.

    >>> slope([1, 2, 3], [5, 7, 9])
    2.0
    """
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)


def exponent(sizes: Sequence[float], values: Sequence[float], n_largest: int | None = None) -> float:
    """p of value = c size^p: the slope in log-log, over the `n_largest` sizes.

    >>> round(exponent([1, 10, 100], [7, 700, 70_000]), 6)
    2.0
    """
    pairs = sorted(zip(sizes, values, strict=True))[-(n_largest or len(sizes)) :]
    return slope([math.log(size) for size, _ in pairs], [math.log(value) for _, value in pairs])


def half_life(distances: Sequence[float], values: Sequence[float]) -> float | None:
    """Steps in which value = c 2^(-distance/half_life) halves; None where it does not fall. Zeros are left out.

    >>> half_life([0, 1, 2, 3], [8, 4, 2, 1])
    1.0
    >>> half_life([1, 2, 3], [1, 1, 1]) is None
    True
    """
    seen = [(d, v) for d, v in zip(distances, values, strict=True) if v > 0]
    if len(seen) < 2:
        return None
    rate = slope([d for d, _ in seen], [math.log2(v) for _, v in seen])
    return -1 / rate if rate < -1e-9 else None


def reach(distances: Sequence[int], effects: Sequence[float], threshold: float) -> int | None:
    """The farthest distance whose effect is at least `threshold` times the nearest one's; None: there is no effect.

    >>> reach([1, 2, 3, 4], [2.0, 0.5, 0.02, 0.001], threshold=0.01)
    3
    """
    if effects[0] <= 0:
        return None
    return max(d for d, e in zip(distances, effects, strict=True) if e >= threshold * effects[0])


def wilson(n_right: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share (Wilson 1927): where it can lie, also when all or none were right.

    >>> [round(x, 3) for x in wilson(50, 100)], [round(x, 3) for x in wilson(100, 100)]
    ([0.404, 0.596], [0.963, 1.0])
    """
    z = 1.959964
    p, extra = n_right / n, z * z / n
    middle = (p + extra / 2) / (1 + extra)
    half = z * math.sqrt(p * (1 - p) / n + extra / (4 * n)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


def short(value: float | None) -> str:
    """A number for a table or a sentence: two digits that count, and no run of zeros.

    >>> [short(v) for v in (0.0, 0.000127, 0.0483, 0.5, 3.14, 20.6, 1234.5, None)]
    ['0', '1.3e-4', '0.048', '0.50', '3.1', '21', '1,234', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    if not math.isfinite(size):
        return "∞"
    if size < 0.001 or size >= 1e6:
        digits, power = f"{value:.1e}".split("e")
        return f"{digits}e{int(power)}"
    if size >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.2g}" if size < 0.0995 else f"{value:.1f}" if size >= 0.995 else f"{value:.2f}"


def tick_text(value: float) -> str:
    """A round number beside an axis.

    >>> [tick_text(v) for v in (1.0, 0.1, 0.001, 1e-4, 300.0)]
    ['1', '0.1', '0.001', '1e-4', '300']
    """
    return f"{value:g}" if 1e-3 <= abs(value) < 1e6 else short(value).replace(".0e", "e")


def listed(parts: Sequence[str]) -> str:
    """Several things in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
