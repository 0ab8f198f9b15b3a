"""What is read off measurements: exponents, half-lives, reach, intervals; and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import correlation, fmean, linear_regression, stdev

from regard.score.significance import student_t

MIN_POINTS = 3  # two lie on every line
MAX_OFF = 0.15  # a power law is fitted where no point lies farther off the line than this share
MIN_FALL = 2.0  # a curve falls if its fit does by this factor, from the nearest distance to the farthest
MIN_R2 = 0.7  # ... and by the same factor at every step if the fit explains this share of its variance
_student_t = cache(student_t)  # asked at every point of a curve
TENTHS = "{:.1f}".format  # how BLEU is written


@dataclass(frozen=True)
class Spread:
    """A figure over seeds: its mean and, of two seeds or more, its 95% interval.

    >>> print(Spread(0.5), "/", Spread(0.5, 0.4, 0.6))
    0.50 / 0.50 (0.40 to 0.60)
    """

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return self.write(to_text)

    def write(self, text: Callable[[float], str]) -> str:
        """The mean, and in brackets the interval, unless its ends read the same; each number written by `text`."""
        if self.low is None or self.high is None or text(self.low) == text(self.high):
            return text(self.mean)
        return f"{text(self.mean)} ({text(self.low)} to {text(self.high)})"


def spread(values: Sequence[float], *, is_log: bool = False) -> Spread:
    """The mean over seeds and its 95% interval by Student's t.

    `is_log`: of the logarithms, for what differs by factors. A zero has none: the mean is then zero, and the interval
    goes to the largest value.

    >>> print(spread([1.0, 2.0, 3.0]), "/", spread([1.0, 10.0, 100.0], is_log=True), "/", spread([3.0]))
    2.0 (-0.48 to 4.5) / 10 (0.033 to 3,049) / 3.0
    """
    if len(values) == 1:
        return Spread(values[0])
    if is_log and min(values) <= 0:
        return Spread(0.0, 0.0, max(values))
    if is_log:
        values = [math.log(value) for value in values]
    half = _student_t(len(values) - 1, 0.05) * stdev(values) / math.sqrt(len(values))
    ends = fmean(values), fmean(values) - half, fmean(values) + half
    return Spread(*(math.exp(end) for end in ends)) if is_log else Spread(*ends)


def spread_of_scores(values: Sequence[float]) -> Spread:
    """The mean over seeds of a score from 0 to 100, such as BLEU or F1, and its 95% interval, cut to what is possible.

    >>> print(spread_of_scores([20.0, 40.0]))
    30 (0 to 100)
    """
    found = spread(values)
    if found.low is None or found.high is None:
        return found
    return replace(found, low=max(0.0, found.low), high=min(100.0, found.high))


def say_seeds(n_seeds: int) -> str:
    """How a sentence over seeds begins.

    >>> say_seeds(1), say_seeds(5)
    ('Trained once', 'Over 5 seeds (95% intervals in brackets)')
    """
    return "Trained once" if n_seeds == 1 else f"Over {n_seeds} seeds (95% intervals in brackets)"


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
    p, level = linear_regression(xs, ys)
    off = math.expm1(max(abs(y - level - p * x) for x, y in zip(xs, ys, strict=True)))
    falls = p * (xs[-1] - xs[0]) < -math.log1p(MAX_OFF)  # no cost falls with size: the clock saw something else
    return None if off > MAX_OFF or falls else PowerLaw(p, off)


@dataclass(frozen=True)
class Fall:
    """How a curve falls with distance. `half_life` None: not by the same factor at every step."""

    falls: bool
    half_life: Spread | None

    def __str__(self) -> str:
        if self.half_life is not None:
            return f"{self.half_life} steps"
        return "falls unevenly" if self.falls else "does not fall"


def fit_fall(distances: Sequence[float], *curves: Sequence[float]) -> Fall:
    """value = c 2^(-distance/half_life), fitted to log2 of the values of each seed's curve; zeros are left out.

    >>> print(fit_fall([0, 1, 2, 3], [8, 4, 2, 1]))
    1.0 steps
    >>> print(fit_fall([5, 20, 60], [4.9, 0.96, 7.7]), "/", fit_fall(range(1, 9), [64, 2, 1, 1, 1, 1, 1, 1]))
    does not fall / falls unevenly
    """
    slopes, explained, longest = [], [], 0.0
    for curve in curves:
        seen = [(float(d), math.log2(v)) for d, v in zip(distances, curve, strict=True) if v > 0]
        if len(seen) < 2:
            return Fall(False, None)
        xs, ys = zip(*seen, strict=True)
        slopes.append(linear_regression(xs, ys).slope)
        explained.append(correlation(xs, ys) ** 2 if min(ys) < max(ys) else 0.0)
        longest = max(longest, xs[-1] - xs[0])
    rate = spread(slopes)
    if -rate.mean * longest < math.log2(MIN_FALL):
        return Fall(False, None)
    if fmean(explained) < MIN_R2:
        return Fall(True, None)
    ends = (None if end is None else -1 / end if end < 0 else math.inf for end in (rate.low, rate.high))
    return Fall(True, Spread(-1 / rate.mean, *ends))


def find_reach(distances: Sequence[int], shares: Sequence[float], threshold: float) -> int | None:
    """The distance up to which every share is at least `threshold`; None: not even the nearest is.

    >>> find_reach([1, 2, 3, 4], [1.0, 0.25, 0.005, 0.02], threshold=0.01)
    2
    """
    reached = None
    for distance, share in zip(distances, shares, strict=True):
        if share < threshold:
            break
        reached = distance
    return reached


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

    >>> [to_text(v) for v in (0.0, 0.000127, 0.03, 0.5, 3.14, 20.6, 1234.5, None)]
    ['0', '1.3e-4', '0.030', '0.50', '3.1', '21', '1,234', '–']
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
    return f"{value:#.2g}" if size < 0.0995 else f"{value:.1f}" if size >= 0.995 else f"{value:.2f}"


def percent(share: float) -> str:
    """A share for a sentence: neither 0% nor 100% is said of a part.

    >>> percent(1.0), percent(0.507), percent(0.998), percent(0.002)
    ('100%', '51%', '99.8%', '0.2%')
    """
    return f"{100 * share:.{1 if 0 < share < 0.01 or 0.99 < share < 1 else 0}f}%"


def format_tick(value: float) -> str:
    """Write a round number beside an axis.

    >>> [format_tick(v) for v in (1.0, 0.1, 0.001, 1e-4, 300.0)]
    ['1', '0.1', '0.001', '1e-4', '300']
    """
    return f"{value:g}" if 1e-3 <= abs(value) < 1e6 else to_text(value).replace(".0e", "e")
