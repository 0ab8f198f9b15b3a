"""What is read off a curve: exponents, half-lives, reach, how sure a share is; and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIN_POINTS = 3  # two lie on every line
MAX_OFF = 0.15  # a power law is fitted where no point lies farther off the line than this share
MIN_FALL = 2.0  # a curve falls if its fit does by this factor, from the nearest distance to the farthest
MIN_R2 = 0.7  # ... and by the same factor at every step if the fit explains this share of its variance


def fit_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The least-squares slope of y over x.

    >>> fit_slope([1, 2, 3], [5, 7, 9])
    2.0
    """
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)


@dataclass(frozen=True)
class PowerLaw:
    """value = c size^exponent, and by what share the farthest point lies off it."""

    exponent: float
    off: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f}" + (f" ±{100 * self.off:.0f}%" if self.off >= 0.005 else "")


def fit_power_law(sizes: Sequence[float], values: Sequence[float], n_largest: int | None = None) -> PowerLaw | None:
    """The line in log-log over the `n_largest` sizes; None where the points lie on none, are too few or fall.

    >>> print(fit_power_law([1, 10, 100], [7, 700, 70_000]), "/", fit_power_law([1, 2, 4], [1, 2.2, 4]))
    2.00 / 1.00 ±7%
    >>> fit_power_law([1, 2, 4], [0.22, 0.69, 0.25]) is None, fit_power_law([1, 2], [1, 2]) is None
    (True, True)
    """
    pairs = sorted(zip(sizes, values, strict=True))[-(n_largest or len(sizes)) :]
    if len(pairs) < MIN_POINTS:
        return None
    xs, ys = [math.log(size) for size, _ in pairs], [math.log(value) for _, value in pairs]
    p = fit_slope(xs, ys)
    level = sum(ys) / len(ys) - p * sum(xs) / len(xs)
    off = math.expm1(max(abs(y - level - p * x) for x, y in zip(xs, ys, strict=True)))
    falls = p * (xs[-1] - xs[0]) < -math.log1p(MAX_OFF)  # no cost falls with size: the clock saw something else
    return None if off > MAX_OFF or falls else PowerLaw(p, off)


@dataclass(frozen=True)
class Fall:
    """How a curve falls with distance. `half_life` None: not by the same factor at every step."""

    falls: bool
    half_life: float | None

    def __str__(self) -> str:
        if self.half_life is not None:
            return f"{to_text(self.half_life)} steps"
        return "falls unevenly" if self.falls else "does not fall"


def fit_fall(distances: Sequence[float], values: Sequence[float]) -> Fall:
    """value = c 2^(-distance/half_life), fitted to log2 of the values; zeros are left out.

    >>> print(fit_fall([0, 1, 2, 3], [8, 4, 2, 1]))
    1.0 steps
    >>> print(fit_fall([5, 20, 60], [4.9, 0.96, 7.7]), "/", fit_fall(range(1, 9), [64, 2, 1, 1, 1, 1, 1, 1]))
    does not fall / falls unevenly
    """
    seen = [(d, math.log2(v)) for d, v in zip(distances, values, strict=True) if v > 0]
    if len(seen) < 2:
        return Fall(False, None)
    xs, ys = [d for d, _ in seen], [y for _, y in seen]
    rate = fit_slope(xs, ys)
    if -rate * (max(xs) - min(xs)) < math.log2(MIN_FALL):
        return Fall(False, None)
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    explained = sum((rate * (x - mean_x)) ** 2 for x in xs) / sum((y - mean_y) ** 2 for y in ys)  # r²
    return Fall(True, -1 / rate if explained >= MIN_R2 else None)


def find_reach(distances: Sequence[int], effects: Sequence[float], threshold: float) -> int | None:
    """The farthest distance whose effect is at least `threshold` times the nearest one's; None: there is no effect.

    >>> find_reach([1, 2, 3, 4], [2.0, 0.5, 0.02, 0.001], threshold=0.01)
    3
    """
    if effects[0] <= 0:
        return None
    return max(d for d, e in zip(distances, effects, strict=True) if e >= threshold * effects[0])


def wilson_interval(n_right: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share (Wilson 1927): where it can lie, also when all or none were right.

    >>> [round(x, 3) for x in wilson_interval(50, 100)], [round(x, 3) for x in wilson_interval(100, 100)]
    ([0.404, 0.596], [0.963, 1.0])
    """
    z = 1.959964
    p, extra = n_right / n, z * z / n
    middle = (p + extra / 2) / (1 + extra)
    half = z * math.sqrt(p * (1 - p) / n + extra / (4 * n)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


def to_text(value: float | None) -> str:
    """Write a number for a table or a sentence: two digits that count, and no run of zeros.

    >>> [to_text(v) for v in (0.0, 0.000127, 0.0483, 0.5, 3.14, 20.6, 1234.5, None)]
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


def format_tick(value: float) -> str:
    """Write a round number beside an axis.

    >>> [format_tick(v) for v in (1.0, 0.1, 0.001, 1e-4, 300.0)]
    ['1', '0.1', '0.001', '1e-4', '300']
    """
    return f"{value:g}" if 1e-3 <= abs(value) < 1e6 else to_text(value).replace(".0e", "e")


def join_words(parts: Sequence[str]) -> str:
    """Write several things in a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
