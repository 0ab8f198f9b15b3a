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

    @property
    def text(self) -> str:
        """
        >>> Figure("perplexity", 1234.567).text, Figure("perplexity", 1.8e9).text
        ('1,234.57', '1.8e+09')
        """
        return f"{self.value:,.{self.n_digits}f}" if abs(self.value) < 1e6 else f"{self.value:.3g}"


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
