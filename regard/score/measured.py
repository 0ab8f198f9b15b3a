"""An evaluation in the form that every job shares: named figures, one of them the headline, and what they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """A number with its name, as people read it."""

    name: str
    value: float
    n_digits: int = 2
    interval: tuple[float, float] | None = None
    """In which the value would lie with 95% on other items of the same kind; None: it was not asked for."""

    @property
    def text(self) -> str:
        """
        >>> Figure("perplexity", 1234.567).text, Figure("perplexity", 1.8e9).text
        ('1,234.57', '1.8e+09')
        >>> Figure("accuracy", 91.26, 1, (89.4, 93.1)).text
        '91.3 (89.4 to 93.1)'
        """
        if self.interval is None:
            return self._write(self.value)
        return f"{self._write(self.value)} ({self._write(self.interval[0])} to {self._write(self.interval[1])})"

    def _write(self, value: float) -> str:
        return f"{value:,.{self.n_digits}f}" if abs(value) < 1e6 else f"{value:.3g}"


@dataclass(frozen=True)
class Measured:
    """Figures in the order in which they are shown; the headline is the one that models are ranked by."""

    figures: tuple[Figure, ...]
    headline: str
    is_higher_better: bool
    counts: Mapping[str, int]
    """What was scored and how much of it: pairs, tokens, bytes."""
    signature: str = ""
    """How the headline was computed, where there is more than one way."""
    details: tuple[str, ...] = ()
    """What is behind the figures, line by line: what was taken for what, the worst errors."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """What has to be known to read the figures: what was left out, on which part they are."""

    @property
    def best(self) -> Figure:
        """The headline figure."""
        return next(figure for figure in self.figures if figure.name == self.headline)

    @property
    def counts_text(self) -> str:
        """
        >>> Measured((), "", True, {"pairs": 1000, "target tokens": 12}).counts_text
        '1,000 pairs, 12 target tokens'
        """
        return ", ".join(f"{n:,} {name}" for name, n in self.counts.items())
