"""A ranking: scores with intervals on one scale, what each cost, and how sure each place is. Any comparison has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from regard.report.chart import decimals, linear_ticks
from regard.report.palette import Look


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One row. `costs` are (label, text), the same labels in every row; `mark` is a footnote sign and its reason."""

    name: str
    look: Look
    about: str
    score: float
    low: float
    high: float
    costs: Sequence[tuple[str, str]]
    mark: tuple[str, str] | None = None
    gap: Gap | None = None
    """To the row below."""


@dataclass(frozen=True)
class Gap:
    """What stands between two rows: how far one is ahead, whether that is settled, and the numbers in a tip."""

    text: str
    tip: str
    is_clear: bool


def ranking_figure(rows: Sequence[Ranked], metric: str, heads: Sequence[str], digits: int, least_margin: float) -> str:
    """Rows, best first, under their heads; `heads` are those of the costs, lines parted by \\n.

    `digits` are those of a score; the scale goes beyond the intervals by 6%, or of `least_margin` if that is more.
    """
    low, high = min(r.low for r in rows), max(r.high for r in rows)
    margin = 0.06 * max(high - low, least_margin)
    scale = (low - margin, high + margin)
    parts = [_head(scale, metric, heads)]
    for place, row in enumerate(rows, start=1):
        parts.append(_row(place, row, metric, digits, scale))
        if row.gap is not None:
            kind = "clear" if row.gap.is_clear else "unclear"
            tip = escape(row.gap.tip, quote=True)
            parts.append(f'<div class="gap {kind}" data-tip="{tip}"><span>{escape(row.gap.text)}</span></div>')
    return f'<div class="ranking">{"".join(parts)}</div>'


def _head(scale: tuple[float, float], metric: str, heads: Sequence[str]) -> str:
    values = linear_ticks(*scale, 5)
    ticks = "".join(f'<span style="left:{_percent(t, scale)}%">{t:.{decimals(values)}f}</span>' for t in values)
    costs = "".join("<span>" + escape(head).replace("\n", "<br>") + "</span>" for head in heads)
    return (
        '<div class="rank head"><span class="place"></span><span class="who">model</span>'
        f'<span class="value">{escape(metric)}</span><span class="strip ticks">{ticks}</span>'
        f'<span class="costs">{costs}</span></div>'
    )


def _row(place: int, row: Ranked, metric: str, digits: int, scale: tuple[float, float]) -> str:
    left, right, middle = (_percent(v, scale) for v in (row.low, row.high, row.score))
    grid = "".join(f'<i class="g" style="left:{_percent(t, scale)}%"></i>' for t in linear_ticks(*scale, 5))
    d = digits + 1
    tip = f"{row.name}: {row.score:.{d}f} {metric}, 95% interval {row.low:.{d}f} to {row.high:.{d}f}"
    mark = "" if row.mark is None else f'<sup title="{escape(row.mark[1], quote=True)}">{escape(row.mark[0])}</sup>'
    cells = "".join(f'<span data-label="{escape(label)}">{escape(value)}</span>' for label, value in row.costs)
    return (
        f'<div class="rank"><span class="place">{place}</span>'
        f'<span class="who"><b style="color:{row.look.colour}">{escape(row.name)}</b>{mark}'
        f"<small>{escape(row.about)}</small></span>"
        f'<span class="value">{row.score:.{digits}f}<small>{row.low:.{digits}f} – {row.high:.{digits}f}</small></span>'
        f'<span class="strip" data-tip="{escape(tip, quote=True)}">{grid}'
        f'<i class="interval" style="left:{left}%;width:{right - left:.2f}%;background:{row.look.colour}"></i>'
        f'<i class="dot {row.look.shape}" style="left:{middle}%;background:{row.look.colour}"></i></span>'
        f'<span class="costs">{cells}</span></div>'
    )


def _percent(value: float, scale: tuple[float, float]) -> float:
    return round(100 * (value - scale[0]) / (scale[1] - scale[0]), 2)


def disagreement(scores: Sequence[tuple[str, float | None, float]], *, is_lower_better: bool, digits: int) -> str:
    """A sentence on the names that validation and test put in another order; empty where both agree.

    `scores` are (name, on the validation data, on the test data).

    >>> print(disagreement([("a", 1.92, 2.05), ("b", 1.95, 2.01), ("c", 2.3, 2.4)], is_lower_better=True, digits=2))
    Validation and test disagree: on the validation data a (1.92) is ahead of b (1.95), on the test data behind it.
    """
    sign = 1 if is_lower_better else -1
    known = sorted((sign * valid, sign * test, name) for name, valid, test in scores if valid is not None)
    pairs = [
        f"{ahead} ({abs(a):.{digits}f}) is ahead of {behind} ({abs(b):.{digits}f})"
        for i, (a, tested, ahead) in enumerate(known)
        for b, other, behind in known[i + 1 :]
        if b > a and other < tested
    ]
    if not pairs:
        return ""
    more = f", and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
    listed = "; ".join(pairs[:3])
    return f"Validation and test disagree: on the validation data {listed}{more}, on the test data behind it."
