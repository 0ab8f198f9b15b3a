"""Loss against what was paid for it, and loss against how much of the text has been seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison, CurvePoint
from regard.report.chart import Plot, Series, charts_for_screen_and_phone, curve_range, x_range
from regard.report.palette import Look
from regard.report.shell import Tab, tabs

AXES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("tokens", "training tokens", count_text),
    ("flops", "training FLOPs", lambda x: f"{x:.0e}".replace("e+0", "e").replace("e+", "e")),
    ("seconds", "training time", duration_text),
)


def learning_curves(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Three charts behind a switch, against tokens, FLOPs and seconds, with one y-axis."""
    found = []
    for axis, label, x_text in AXES:
        series = learning_series(comparison, axis, looks)
        plot = Plot(
            title=f"Learning curves, {label}", x_label=label, y_label="bits per byte, validation text", x_text=x_text,
            x_limits=x_range(series), y_limits=curve_range(series),
        )  # fmt: skip
        found.append(Tab(f"curve-{axis}", label, charts_for_screen_and_phone(series, plot)))
    return tabs(found)


def learning_series(comparison: Comparison, axis: str, looks: Mapping[str, Look]) -> list[Series]:
    """One line a contender, the mean over its seeds; a band from the lowest to the highest where there are several."""
    found = []
    for contender in comparison.contenders:
        rows = mean_curve([s.curve for s in contender.seeds], axis)
        if rows:
            band = [(x, low, high) for x, _, low, high in rows] if len(contender.seeds) > 1 else []
            found.append(Series(contender.name, looks[contender.name], [(x, y) for x, y, _, _ in rows], band))
    return found


def mean_curve(seeds: Sequence[Sequence[CurvePoint]], axis: str) -> list[tuple[float, float, float, float]]:
    """(x, mean, lowest, highest) over seeds at the evaluations that all seeds reached."""
    found = []
    for points in zip(*seeds, strict=False):
        bits = [p.bits_per_byte for p in points]
        found.append((fmean(float(getattr(p, axis)) for p in points), fmean(bits), min(bits), max(bits)))
    return found


def context_chart(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Bits per byte by the number of bytes seen before: a line that keeps falling belongs to a long memory."""
    series = [
        Series(c.name, looks[c.name], [(max(1.0, p.n_bytes_before), p.bits_per_byte) for p in c.positions])
        for c in comparison.contenders
        if c.positions
    ]
    if not series:
        return ""
    plot = Plot(
        title="Loss by position", x_label="bytes of context seen before", y_label="bits per byte, test text",
        x_text=count_text, x_limits=x_range(series), y_limits=curve_range(series),
    )  # fmt: skip
    return charts_for_screen_and_phone(series, plot)
