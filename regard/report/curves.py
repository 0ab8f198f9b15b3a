"""Validation scores against what was paid for them, and loss against how much of the text has been seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from regard.compare.result import Comparison
from regard.report.chart import Plot, Series, charts_for_screen_and_phone, curve_range, x_range
from regard.report.palette import Look
from regard.report.shell import Tab, tabs
from regard.score.figures import Measure, count_text, duration_text

AXES: dict[str, tuple[str, Callable[[float], str]]] = {
    "tokens": ("training tokens", count_text),
    "flops": ("training FLOPs", lambda x: f"{x:.0e}".replace("e+0", "e").replace("e+", "e")),
    "seconds": ("training time", duration_text),
}


def learning_curves(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Three charts behind a switch, against tokens, FLOPs and seconds, with one y-axis."""
    watched, found = comparison.setup.watched_measure, []
    for axis, (label, x_text) in AXES.items():
        series = learning_series(comparison, axis, looks)
        if not series:
            return ""
        plot = Plot(
            title=f"Learning curves, {label}", x_label=label, y_label=f"{watched.name}, validation data",
            x_text=x_text, y_text=watched.value, x_limits=x_range(series), y_limits=score_range(watched, series),
        )  # fmt: skip
        found.append(Tab(f"curve-{axis}", label, charts_for_screen_and_phone(series, plot)))
    return tabs(found)


def learning_series(comparison: Comparison, axis: str, looks: Mapping[str, Look]) -> list[Series]:
    """One line a contender, the mean over its runs; a band from the lowest to the highest where there are several."""
    found = []
    for contender in comparison.contenders:
        rows = [(float(getattr(point, axis)), point) for point in contender.curve]
        if rows:
            band = [(x, point.low, point.high) for x, point in rows] if len(contender.runs) > 1 else []
            found.append(Series(contender.name, looks[contender.name], [(x, p.score) for x, p in rows], band))
    return found


def score_range(watched: Measure, series: Sequence[Series]) -> tuple[float, float]:
    """A y-range that shows where the lines end; how they began may leave the picture."""
    if not watched.is_higher_better:
        return curve_range(series)
    low, high = curve_range([Series(s.name, s.look, [(x, -y) for x, y in s.points]) for s in series])
    return max(0.0, -high), -low


def context_chart(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Bits per byte by the number of bytes seen before: a line that keeps falling belongs to a long memory."""
    series = []
    for c in comparison.contenders:
        points = [(max(1.0, p.n_bytes_before), p) for p in c.views.positions]
        band = [(x, p.low, p.high) for x, p in points if p.low is not None and p.high is not None]
        if points:
            series.append(Series(c.name, looks[c.name], [(x, p.bits_per_byte) for x, p in points], band))
    if not series:
        return ""
    plot = Plot(
        title="Loss by position", x_label="bytes of context seen before", y_label="bits per byte, test text",
        x_text=count_text, x_limits=x_range(series), y_limits=curve_range(series),
    )  # fmt: skip
    return charts_for_screen_and_phone(series, plot)
