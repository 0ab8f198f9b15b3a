"""A study as one self-contained page, in the look of the comparison report: no network, nothing but the finding.

`render_study` is a pure function. Everything that comes from data, models or the user is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from regard.comparison.budget import count_text, duration_text
from regard.report.chart import Series, line_chart
from regard.report.curves import WIDTHS
from regard.report.palette import colour_of, dash_of
from regard.report.shell import facts, report_page, section, with_code
from regard.studies.finding import Cell, Chart, Finding, Line, Numbers, Study
from regard.studies.fits import short, tick_text


def render_study(study: Study) -> str:
    """The whole page as text."""
    finding = study.finding
    tables = (finding.summary, *finding.tables)
    return report_page(
        title=f"Regard: {finding.question}",
        kicker=f"Regard · study: {study.name}",
        headline=finding.question,
        lede=finding.sentence,
        notes="".join(f'<p class="note">{with_code(note)}</p>' for note in finding.notes),
        sections=[
            *(_figure(chart) for chart in finding.charts),
            *(section(table.title, table.note, _table(table)) for table in tables),
            section("How it was measured", "", _method(study, finding)),
        ],
        made="Made by Regard; its numbers are in numbers.json.",
        own_css=OWN_CSS,
    )


# A shadow at an edge of a table behind which there is more: the white cover scrolls with the table, the shadow stays.
OWN_CSS = """
.numbers { background:
  linear-gradient(to right, var(--ground) 30%, #fff0) 0 0 / 40px 100% no-repeat local,
  linear-gradient(to left, var(--ground) 30%, #fff0) 100% 0 / 40px 100% no-repeat local,
  linear-gradient(to right, #0003, #0000) 0 0 / 14px 100% no-repeat scroll,
  linear-gradient(to left, #0003, #0000) 100% 0 / 14px 100% no-repeat scroll; }
.numbers td:first-child { max-width: 16em; min-width: 6em; overflow-wrap: break-word; white-space: normal; }
.lede + .note { margin-top: 10px; }
code { font-family: var(--mono); font-size: 0.93em; }
"""


def _figure(chart: Chart) -> str:
    """Drawn twice, for a screen and for a phone; the style sheet shows one."""
    charts = "".join(
        f'<div class="{kind}">'
        + line_chart(
            series_of(chart),
            width=width,
            height=height,
            x_label=chart.x_label,
            y_label=chart.y_label,
            x_text=x_text(chart),
            y_range=y_limits(chart),
            title=chart.title,
            is_x_log=chart.is_x_log,
            is_y_log=chart.is_y_log,
            y_text=short,
            tick_text=tick_text,
            x_limits=x_limits(chart),
            measured_at=chart.measured_at,
        )
        + "</div>"
        for kind, width, height in WIDTHS
    )
    return section(chart.title, chart.note, charts)


def series_of(chart: Chart) -> list[Series]:
    return [Series(s.name, colour_of(s.colour), s.dash or dash_of(s.colour), s.points, s.band) for s in chart.lines]


def x_limits(chart: Chart) -> tuple[float, float]:
    """From the first to the last x of all lines, and a little more where these are dots."""
    xs = [x for line in chart.lines for x, _ in line.points]
    low, high = min(xs), max(xs)
    if chart.measured_at and chart.is_x_log and high > low:
        room = (high / low) ** 0.02
        low, high = low / room, high * room
    return (low, high) if high > low else (low * 0.9, high * 1.1 + 1e-9)


def x_text(chart: Chart) -> Callable[[float], str]:
    """How an x is written: sizes that were chosen in full, others rounded."""
    return (lambda x: f"{x:,.0f}") if chart.measured_at else count_text


def y_limits(chart: Chart) -> tuple[float, float]:
    """As the lines need; on a logarithmic axis at most twelve decades, and a little room around the lines."""
    if chart.y_limits is not None:
        return chart.y_limits
    values = [y for line in chart.lines for y in _values(line) if y > 0 or not chart.is_y_log] or [1.0]
    low, high = min(values), max(values)
    if chart.is_y_log:
        low = max(low, high * 1e-12)
        room = max(1.25, (high / low) ** 0.03)
        return low / room, high * room
    room = 0.05 * (high - low) or 0.5
    return low - (room if low != 0 else 0.0), high + room


def _values(line: Line) -> Sequence[float]:
    return [y for _, y in line.points]


def _table(table: Numbers) -> str:
    """Scrolls by itself where the screen is narrow, so that the page never does."""
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell_text(cell))}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    whole = f'<div class="numbers"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<details><summary>{len(table.rows)} rows</summary>{whole}</details>" if table.is_folded else whole


def cell_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else short(cell)


def _method(study: Study, finding: Finding) -> str:
    rows = [
        *finding.method,
        ("Settings", ", ".join(f"{key} {_value(value)}" for key, value in study.settings.items())),
        ("Machine", study.hardware),
        ("Versions", ", ".join(f"{name} {version}" for name, version in study.versions.items())),
        ("When", f"{study.date}, {duration_text(study.seconds)} in all"),
    ]
    return f"{facts(rows)}<p>To repeat it:</p><pre class=command>{escape(study.command)}</pre>"


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return "/".join(map(str, value))
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return "default" if value is None else str(value)
