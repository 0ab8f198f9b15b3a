"""A ranking: scores with intervals on one scale, what each cost, and how sure each place is. Any comparison has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from regard.report.chart import decimals
from regard.report.palette import Look
from regard.score.figures import Measure, linear_ticks


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One row. `costs` are (label, text), the same labels in every row."""

    name: str
    look: Look
    about: str
    score: float
    low: float
    high: float
    costs: Sequence[tuple[str, str]]
    gap: Gap | None = None
    """To the row below."""


@dataclass(frozen=True)
class Gap:
    """What stands between two rows: how far one is ahead, whether that is settled, and the numbers in a tip."""

    text: str
    tip: str
    is_settled: bool


def ranking_figure(parts: Sequence[tuple[str, Sequence[Ranked]]], measure: Measure, heads: Sequence[str]) -> str:
    """Rows, best first, under their heads, in parts that are ranked by themselves, each with a title.

    `heads` are those of the costs, lines parted by \\n.
    """
    rows = [row for _, part in parts for row in part]
    low, high = min(r.low for r in rows), max(r.high for r in rows)
    margin = 0.06 * max(high - low, 0.5 if measure.is_higher_better else 0.05)
    scale = (low - margin, high + margin)
    drawn = [_head(scale, measure.name, heads)]
    for title, part in parts:
        drawn.append(f'<p class="apart">{escape(title)}</p>' if title else "")
        for place, row in enumerate(part, start=1):
            drawn.append(_row(place, row, measure, scale))
            if row.gap is not None:
                kind = "clear" if row.gap.is_settled else "unclear"
                tip = escape(row.gap.tip, quote=True)
                drawn.append(f'<div class="gap {kind}" data-tip="{tip}"><span>{escape(row.gap.text)}</span></div>')
    return f'<div class="ranking">{"".join(drawn)}</div>'


def _head(scale: tuple[float, float], metric: str, heads: Sequence[str]) -> str:
    values = linear_ticks(*scale, 5)
    ticks = "".join(f'<span style="left:{_percent(t, scale)}%">{t:.{decimals(values)}f}</span>' for t in values)
    costs = "".join("<span>" + escape(head).replace("\n", "<br>") + "</span>" for head in heads)
    return (
        '<div class="rank head"><span class="place"></span><span class="who">model</span>'
        f'<span class="value">{escape(metric)}</span><span class="strip ticks">{ticks}</span>'
        f'<span class="costs">{costs}</span></div>'
    )


def _row(place: int, row: Ranked, measure: Measure, scale: tuple[float, float]) -> str:
    left, right, middle = (_percent(v, scale) for v in (row.low, row.high, row.score))
    grid = "".join(f'<i class="g" style="left:{_percent(t, scale)}%"></i>' for t in linear_ticks(*scale, 5))
    low, middle_text, high = (measure.exact(value) for value in (row.low, row.score, row.high))
    tip = f"{row.name}: {middle_text} {measure.name}, 95% interval {low} to {high}"
    interval = measure.interval(row.low, row.high, " – ")
    cells = "".join(f'<span data-label="{escape(label)}">{escape(value)}</span>' for label, value in row.costs)
    return (
        f'<div class="rank"><span class="place">{place}</span>'
        f'<span class="who"><b style="color:{row.look.colour}">{escape(row.name)}</b>'
        f"<small>{escape(row.about)}</small></span>"
        f'<span class="value">{measure.value(row.score)}<small>{interval}</small></span>'
        f'<span class="strip" data-tip="{escape(tip, quote=True)}">{grid}'
        f'<i class="interval" style="left:{left}%;width:{right - left:.2f}%;background:{row.look.colour}"></i>'
        f'<i class="dot {row.look.shape}" style="left:{middle}%;background:{row.look.colour}"></i></span>'
        f'<span class="costs">{cells}</span></div>'
    )


def _percent(value: float, scale: tuple[float, float]) -> float:
    return round(100 * (value - scale[0]) / (scale[1] - scale[0]), 2)
