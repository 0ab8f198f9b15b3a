"""Validation scores against what was paid for them, and loss against how much of the text has been seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from regard.compare.result import Comparison
from regard.report.chart import Plot, Series, charts_for_screen_and_phone, curve_range, x_range
from regard.report.palette import Look
from regard.report.shell import Tab, table, tabs
from regard.score.figures import Measure, count_text, duration_text

AXES: dict[str, tuple[str, Callable[[float], str]]] = {
    "tokens": ("training {unit}s", count_text),
    "flops": ("training FLOPs", lambda x: f"{x:.0e}".replace("e+0", "e").replace("e+", "e")),
    "seconds": ("training time", duration_text),
}


def learning_curves(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Three charts behind a switch, against what training counts, FLOPs and seconds, with one y-axis."""
    watched, found = comparison.setup.watched_measure, []
    for axis, (form, x_text) in AXES.items():
        label = form.format(unit=comparison.setup.unit)
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


def length_chart(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """The score by the number of words of the source, with intervals, and a table of the same."""
    found = [c for c in comparison.ranked if c.by_length]
    if not found:
        return ""
    measure, series = comparison.setup.measure, []
    for c in found:
        band = [(p.n_words, p.low, p.high) for p in c.by_length]
        series.append(Series(c.name, looks[c.name], [(p.n_words, p.score) for p in c.by_length], band))
    xs = [x for line in series for x, _ in line.points]
    highest = max(p.high for c in found for p in c.by_length)
    plot = Plot(
        title=f"{measure.name} by length", x_label="words of the source", y_label=f"{measure.name}, test data",
        x_text="{:,.0f}".format, y_text=measure.value, is_x_log=False, measured_at=[x for x, _ in series[0].points],
        x_limits=(min(xs) - 1, max(xs) + 1), y_limits=(0.0, min(100.0, 1.05 * highest) if highest else 1.0),
    )  # fmt: skip
    bins = found[0].by_length
    heads = [f"{p.shortest}–{p.longest} words" if p.longest > p.shortest else f"{p.shortest} words" for p in bins]
    rows = [
        (c.name, *(f"{measure.value(p.score)} ({measure.interval(p.low, p.high)})" for p in c.by_length)) for c in found
    ]
    rows.append((comparison.setup.items, *(f"{p.n_items:,}" for p in bins)))
    return charts_for_screen_and_phone(series, plot) + table((measure.name, *heads), rows)


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
