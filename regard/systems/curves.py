"""Validation scores against what was paid for them, as lines that the page and the picture draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.comparison.budget import count_text, duration_text
from regard.report.chart import Series, curve_range
from regard.report.palette import Look, colour_of, dash_of, shape_of
from regard.systems.result import SystemsComparison

AXES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("flops", "training FLOPs", lambda x: f"{x:.0e}".replace("e+0", "e").replace("e+", "e")),
    ("seconds", "training time", duration_text),
    ("tokens", "training tokens", count_text),
)


def curves_by(comparison: SystemsComparison, axis: str) -> list[Series]:
    """One line a system that was watched, in the order given."""
    return [
        Series(
            system.name,
            Look(colour_of(i), dash_of(i), shape_of(i)),
            [(float(getattr(point, axis)), point.score) for point in system.curve],
        )
        for i, system in enumerate(comparison.systems)
        if system.curve
    ]


def score_range(comparison: SystemsComparison, series: Sequence[Series]) -> tuple[float, float]:
    """A y-range that shows where the lines end; how they began may leave the picture."""
    if not comparison.setup.is_watched_upwards:
        return curve_range(series)
    turned = [Series(s.name, s.look, [(x, -y) for x, y in s.points]) for s in series]
    low, high = curve_range(turned)
    return max(0.0, -high), -low
