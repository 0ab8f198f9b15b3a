"""A study's figure as a picture for a talk: its charts side by side, the sentence above them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from regard.report.palette import colour_of
from regard.report.study_page import x_limits, x_text, y_limits
from regard.studies.finding import Chart, Study
from regard.studies.fits import tick_text

INK, SOFT, LINE = "#1c1e21", "#5d6470", "#e3e5e8"
MOST = 3  # charts in one picture: more would be too small to read
PER_ROW = 46  # characters of the title that a chart's width holds


def write_picture(study: Study, path: Path) -> None:
    """Draw `path` (PNG). No display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    charts = study.finding.charts[:MOST]
    figure = Figure(figsize=(max(6.6, 4.6 * len(charts)), 4.9), dpi=140, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    for axes, chart in zip(figure.subplots(1, len(charts), squeeze=False)[0], charts, strict=True):
        _draw(axes, chart)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    title = textwrap.fill(study.sentence, max(66, PER_ROW * len(charts)))
    figure.suptitle(title, x=0.012, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    figure.savefig(path, format="png")


def _draw(axes: Any, chart: Chart) -> None:
    for line in chart.lines:
        xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
        style: Any = (0, tuple(float(d) for d in line.dash.split())) if line.dash else "solid"
        axes.plot(xs, ys, color=colour_of(line.colour), linewidth=2.2, linestyle=style, label=line.name,
                  marker="o" if chart.measured_at else None, markersize=4.5)  # fmt: skip
        if line.band:
            band = ([b[i] for b in line.band] for i in range(3))  # x, low, high
            axes.fill_between(*band, color=colour_of(line.colour), alpha=0.16, linewidth=0)
    axes.set_xlim(*x_limits(chart))  # before the scales, which would look for limits of their own
    axes.set_ylim(*y_limits(chart))
    axes.set_xscale("log" if chart.is_x_log else "linear")
    axes.set_yscale("log" if chart.is_y_log else "linear", **({"nonpositive": "clip"} if chart.is_y_log else {}))
    axes.set_title(chart.title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(chart.x_label, fontsize=9.5, color=SOFT)
    axes.set_ylabel(chart.y_label, fontsize=9.5, color=SOFT)
    if chart.measured_at:
        axes.set_xticks(chart.measured_at)
        axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda x, _: x_text(chart)(x))
    axes.xaxis.set_minor_formatter(lambda *_: "")
    if chart.is_y_log:
        axes.yaxis.set_major_formatter(lambda y, _: tick_text(y))
        axes.yaxis.set_minor_formatter(lambda *_: "")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(which="both", length=0, colors=SOFT, labelsize=9)
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
