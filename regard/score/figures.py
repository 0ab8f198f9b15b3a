"""How numbers are written: counts, durations, FLOPs, p-values, and a measure's value with its interval.

Tables, pages, headlines and cards all print through this file, so that one number looks the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure by name. Scores in per cent, higher is better, need fewer decimals than a loss.

    >>> bleu, loss = Measure(name="BLEU", is_higher_better=True), Measure(name="bits per byte", is_higher_better=False)
    >>> bleu.value(35.123), loss.value(2.05123), bleu.interval(33.0, 37.26), loss.interval(1.99, 2.11)
    ('35.12', '2.051', '33.0–37.3', '1.990–2.110')
    >>> bleu.named(35.123), loss.named(2.05123), bleu.level(30.0), loss.level(0.75)
    ('BLEU 35.1', '2.051 bits per byte', 'BLEU 30', '0.75 bits per byte')
    >>> [loss.gap(0.31 / 10**n) for n in range(3)]
    ['0.31', '0.031', '0.0031']
    """

    name: str
    is_higher_better: bool

    @property
    def direction(self) -> str:
        return "higher is better" if self.is_higher_better else "lower is better"

    @property
    def short_name(self) -> str:
        return "bits/byte" if self.name == "bits per byte" else self.name

    def value(self, value: float) -> str:
        """As in a table."""
        return f"{value:.2f}" if self.is_higher_better else f"{value:.3f}"

    def exact(self, value: float) -> str:
        """With as many decimals as anyone may want: for the text under the pointer."""
        return f"{value:.2f}" if self.is_higher_better else f"{value:.4f}"

    def interval(self, low: float, high: float, between: str = "–") -> str:
        digits = 1 if self.is_higher_better else 3
        return f"{low:.{digits}f}{between}{high:.{digits}f}"

    def gap(self, difference: float) -> str:
        """A difference as it is said in a sentence: of a loss to two digits, down to 0.0001."""
        if self.is_higher_better:
            return f"{difference:.1f}"
        digits = 2 if abs(difference) >= 0.095 else 3 if abs(difference) >= 0.0095 else 4
        return f"{difference:.{digits}f}"

    def named(self, value: float) -> str:
        """As it is said in a sentence; a loss with the decimals of the table, where close scores differ."""
        return f"{self.name} {value:.1f}" if self.is_higher_better else f"{self.value(value)} {self.name}"

    def level(self, value: float) -> str:
        """A round value as it is said."""
        return f"{self.name} {value:g}" if self.is_higher_better else f"{value:g} {self.name}"

    def is_better(self, first: float, second: float) -> bool:
        return first > second if self.is_higher_better else first < second


def count_text(n: float) -> str:
    """A count to three digits.

    >>> [count_text(n) for n in (950, 1000, 20_500_000, 3e9)]
    ['950', '1k', '20.5M', '3G']
    """
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= scale * 0.9995:
            return f"{n / scale:.3g}{letter}"
    return f"{n:.3g}"


def duration_text(seconds: float) -> str:
    """Seconds as a reader says them.

    >>> [duration_text(s) for s in (0.5, 45, 120, 5400)]
    ['0.5 s', '45 s', '2 min', '1.5 h']
    """
    if seconds < 60:
        return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds:.2g} s"
    return f"{seconds / 60:.3g} min" if seconds < 3600 else f"{seconds / 3600:.3g} h"


def or_dash(write: Callable[[float], str], value: float | None) -> str:
    """A number as `write` writes it; – where it is not known.

    >>> or_dash(count_text, 2000), or_dash(count_text, None)
    ('2k', '–')
    """
    return "–" if value is None else write(value)


def flops_text(flops: float) -> str:
    """
    >>> flops_text(3.14e15), flops_text(9e7), flops_text(0.0)
    ('3.1e15', '9.0e7', 'none')
    """
    return f"{flops:.1e}".replace("e+0", "e").replace("e+", "e") if flops else "none"


def cost_text(flops: float | None, seconds: float | None, between: str, has_time: bool = True) -> str:
    """FLOPs and time; – where there are none.

    >>> cost_text(2e12, 20.0, ", "), cost_text(2e12, 20.0, ", ", has_time=False), cost_text(None, None, ", ")
    ('2.0e12, 20 s', '2.0e12', '–')
    """
    if flops is None or seconds is None:
        return "–"
    return flops_text(flops) + (between + duration_text(seconds) if has_time else "")


def p_text(p: float) -> str:
    """A p-value as it is printed.

    >>> p_text(0.0312), p_text(0.00021), p_text(0.00009)
    ('p = 0.031', 'p = 0.0002', 'p < 0.0001')
    """
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.4f}"


def join_names(names: list[str]) -> str:
    """
    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Round, evenly spaced values inside [low, high], at most `most` + 1 of them.

    >>> linear_ticks(1.62, 2.55, 5)
    [1.8, 2.0, 2.2, 2.4]
    """
    raw = (high - low) / most
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(m * scale for m in (1, 2, 2.5, 5, 10) if m * scale >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]
