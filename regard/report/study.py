"""A study as one self-contained page, and its figure as a picture for a talk.

Both are drawn from the finding alone. Everything on the page that comes from data, models or the user is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regard.report.chart import Plot, Series, charts_for_screen_and_phone
from regard.report.figure import clean_axes, draw_series, drawing, log_y, new_figure
from regard.report.look import add_views, place_view
from regard.report.palette import INK, SOFT, looks_of
from regard.report.shell import facts, fold, how_to_repeat, report_page, section, setting_text, table
from regard.score.figures import count_text, duration_text
from regard.studies.finding import Cell, Chart, Numbers, Study
from regard.studies.fits import format_tick, to_text

MOST = 3  # charts in one picture: more would be too small to read
PER_CHART = 40  # characters of the title that a chart's width holds
ALONE = 58  # where there is one chart, which is wider


def render_study(study: Study) -> str:
    """The whole page as text."""
    finding = study.finding
    figures = zip(finding.charts, series_of(finding.charts), plots_of(finding.charts), strict=True)
    return report_page(
        title=f"Regard: {finding.question}",
        kicker=f"Regard · study: {study.name}",
        headline=finding.question,
        lede=finding.sentence,
        notes=finding.notes,
        sections=[
            *(section(v.title, v.note, place_view(v, 0), v.name) for v in finding.views),
            *(section(c.title, c.note, charts_for_screen_and_phone(series, plot)) for c, series, plot in figures),
            *(section(t.title, t.note, _table(t)) for t in (finding.summary, *finding.tables)),
            section("How it was measured", "", _method(study)),
        ],
        made="Made by Regard; its numbers are in numbers.json.",
        **add_views([finding.views]),
    )


@drawing()
def write_picture(study: Study, path: Path) -> None:
    """Draw `path` (PNG): the charts side by side, the sentence above them. No display is needed."""
    charts = study.finding.charts
    figures = list(zip(charts, series_of(charts), plots_of(charts), strict=True))[:MOST]
    width = max(6.6, 4.6 * len(figures))
    figure = new_figure(width, 4.9, study.sentence, "", max(ALONE, PER_CHART * len(figures)))
    for axes, (chart, series, plot) in zip(figure.subplots(1, len(figures), squeeze=False)[0], figures, strict=True):
        _draw(axes, chart, series, plot)
    figure.savefig(path, format="png")


def series_of(charts: Sequence[Chart]) -> list[list[Series]]:
    """The lines of every chart; a model has one colour in all of them."""
    looks = looks_of(line.model for chart in charts for line in chart.lines)
    found = []
    for chart in charts:
        styled = ((line, looks[line.model]) for line in chart.lines)
        found.append([
            Series(line.name, look._replace(dash=line.dash or look.dash), line.points, line.band)
            for line, look in styled
        ])  # fmt: skip
    return found


def plots_of(charts: Sequence[Chart]) -> list[Plot]:
    """The axes of every chart: those with one label share their limits, so that charts can be compared."""
    return [
        Plot(
            title=chart.title, x_label=chart.x_label, y_label=chart.y_label, x_text=_x_text(chart), y_text=to_text,
            tick_text=format_tick, is_x_log=chart.is_x_log, is_y_log=chart.is_y_log, measured_at=chart.measured_at,
            x_limits=x_limits([c for c in charts if (c.x_label, c.is_x_log) == (chart.x_label, chart.is_x_log)]),
            y_limits=chart.y_limits or y_limits([c for c in charts if _shares_y(c, chart)]),
        )
        for chart in charts
    ]  # fmt: skip


def _shares_y(one: Chart, other: Chart) -> bool:
    return one.y_limits is None and (one.y_label, one.is_y_log) == (other.y_label, other.is_y_log)


def x_limits(charts: Sequence[Chart]) -> tuple[float, float]:
    """From the first to the last x of all lines, and a little more where these are dots."""
    xs = [x for chart in charts for line in chart.lines for x, _ in line.points]
    low, high = min(xs), max(xs)
    if charts[0].measured_at and charts[0].is_x_log and high > low:
        room = (high / low) ** 0.02
        low, high = low / room, high * room
    return (low, high) if high > low else (low * 0.9, high * 1.1 + 1e-9)


def y_limits(charts: Sequence[Chart]) -> tuple[float, float]:
    """As the lines need; on a logarithmic axis at most twelve decades, and a little room around the lines."""
    is_log = charts[0].is_y_log
    ys = [y for chart in charts for line in chart.lines for _, y in line.points if y > 0 or not is_log] or [1.0]
    low, high = min(ys), max(ys)
    if is_log:
        low = max(low, high * 1e-12)
        room = max(1.25, (high / low) ** 0.03)
        return low / room, high * room
    room = 0.05 * (high - low) or 0.5
    return low - (room if low != 0 else 0.0), high + room


def _x_text(chart: Chart) -> Callable[[float], str]:
    """How an x is written: sizes that were chosen in full, others rounded."""
    return "{:,.0f}".format if chart.measured_at else count_text


def _draw(axes: Any, chart: Chart, series: Sequence[Series], plot: Plot) -> None:
    clean_axes(axes, chart.title)
    draw_series(axes, series, has_dots=bool(chart.measured_at))
    axes.set_xlim(*plot.x_limits)  # before the scales, which would look for limits of their own
    axes.set_ylim(*plot.y_limits)
    axes.set_xscale("log" if chart.is_x_log else "linear")
    if chart.is_y_log:
        log_y(axes)
    axes.set_xlabel(chart.x_label, fontsize=9.5, color=SOFT)
    axes.set_ylabel(chart.y_label, fontsize=9.5, color=SOFT)
    if chart.measured_at:
        axes.set_xticks(chart.measured_at)
        axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda x, _: plot.x_text(x))
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def _table(numbers: Numbers) -> str:
    whole = table(numbers.columns, [[cell_text(cell) for cell in row] for row in numbers.rows])
    return fold(f"{len(numbers.rows)} rows", whole) if numbers.is_folded else whole


def cell_text(cell: Cell) -> str:
    """A cell of a table as it is shown: whole numbers in full, others with two digits that count."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else to_text(cell)


def _method(study: Study) -> str:
    rows = [
        *study.finding.method.items(),
        ("Settings", ", ".join(f"{key} {setting_text(value)}" for key, value in study.settings.items())),
        ("Machine", study.hardware),
        ("Versions", ", ".join(f"{name} {version}" for name, version in study.versions.items())),
        ("When", f"{study.date}, {duration_text(study.seconds)} in all"),
    ]
    return facts(rows) + how_to_repeat(study.command)
