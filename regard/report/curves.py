"""Loss against what was paid for it, and loss against how much of the text has been seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison, ContenderResult, CurvePoint
from regard.report.chart import Series, curve_range, line_chart
from regard.report.palette import colour_of, dash_of, shape_of

AXES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("tokens", "training tokens", count_text),
    ("flops", "training FLOPs", lambda x: f"{x:.0e}".replace("e+0", "e").replace("e+", "e")),
    ("seconds", "training time", duration_text),
)
WIDTHS = (("wide", 1040, 440), ("narrow", 372, 320))  # for a screen and for a phone; the style sheet shows one


def learning_curves(comparison: Comparison) -> str:
    """Three charts behind a switch: against tokens, FLOPs and seconds."""
    tabs, panels = [], []
    for i, (name, label, text) in enumerate(AXES):
        series = [s for s in (_curve(i, c, name) for i, c in enumerate(comparison.contenders)) if s.points]
        charts = _both_widths(series, label, "bits per byte, validation text", text, f"Learning curves, {label}")
        tabs.append(f'<button data-tab="curve-{name}"{" class=on" if i == 0 else ""}>{label}</button>')
        panels.append(f'<div class="panel" id="curve-{name}"{"" if i == 0 else " hidden"}>{charts}</div>')
    return f'<div class="tabs" role="tablist">{"".join(tabs)}</div>{"".join(panels)}'


def context_chart(comparison: Comparison) -> str:
    """Bits per byte by the number of bytes seen before: a line that keeps falling belongs to a long memory."""
    series = [
        Series(
            c.name,
            colour_of(i),
            dash_of(i),
            [(max(1.0, p.n_bytes_before), p.bits_per_byte) for p in c.positions],
            shape=shape_of(i),
        )
        for i, c in enumerate(comparison.contenders)
        if c.positions
    ]
    if not series:
        return ""
    return _both_widths(
        series, "bytes of context seen before", "bits per byte, test text", count_text, "Loss by position"
    )


def mean_curve(seeds: Sequence[Sequence[CurvePoint]], axis: str) -> list[tuple[float, float, float, float]]:
    """(x, mean, lowest, highest) over seeds at the evaluations that all seeds reached."""
    return [
        (
            fmean(float(getattr(p, axis)) for p in points),
            fmean(p.bits_per_byte for p in points),
            min(p.bits_per_byte for p in points),
            max(p.bits_per_byte for p in points),
        )
        for points in zip(*seeds, strict=False)
    ]


def _curve(index: int, contender: ContenderResult, axis: str) -> Series:
    rows = mean_curve([s.curve for s in contender.seeds], axis)
    band = [(x, low, high) for x, _, low, high in rows] if len(contender.seeds) > 1 else []
    points = [(x, y) for x, y, _, _ in rows]
    return Series(contender.name, colour_of(index), dash_of(index), points, band, shape_of(index))


def _both_widths(
    series: Sequence[Series], x_label: str, y_label: str, x_text: Callable[[float], str], title: str
) -> str:
    return "".join(
        f'<div class="{kind}">'
        + line_chart(
            series,
            width=width,
            height=height,
            x_label=x_label,
            y_label=y_label,
            x_text=x_text,
            y_range=curve_range(series),
            title=title,
        )
        + "</div>"
        for kind, width, height in WIDTHS
    )
