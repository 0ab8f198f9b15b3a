"""The comparison as one picture for a README or a talk: learning by FLOPs and by time, and the ranking."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from regard.comparison.budget import duration_text
from regard.report.chart import Series, log_ticks, x_range
from regard.report.palette import colour_of, shape_of
from regard.systems.curves import AXES, curves_by, score_range
from regard.systems.result import SystemsComparison

INK, SOFT, LINE = "#1c1e21", "#5d6470", "#e3e5e8"
MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
MAX_TITLE = 105  # characters of a title line that the picture is wide enough for


def write_overview(comparison: SystemsComparison, path: Path) -> None:
    """Draw `path` (PNG), one colour a system as in the page. No display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    is_watched = any(system.curve for system in comparison.systems)
    n = len(comparison.systems)
    figure = Figure(figsize=(15 if is_watched else 7, max(4.6, 2.2 + 0.36 * n)), dpi=140, facecolor="white",
                    layout="constrained")  # fmt: skip
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.16, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    title = textwrap.fill(comparison.headline[0], MAX_TITLE if is_watched else 60)
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    setup = comparison.setup
    figure.supxlabel(
        f"{setup.metric} of {setup.n_tested:,} test items, {setup.decoding}; bars are 95% intervals over draws of them",
        x=0.012, ha="left", fontsize=9.5, color=SOFT,
    )  # fmt: skip
    panels = figure.subplots(1, 3 if is_watched else 1, squeeze=False)[0]
    _ranking(panels[-1], comparison)
    for axes, (axis, label, text) in zip(panels[:-1], AXES, strict=False):
        series = curves_by(comparison, axis)
        _curves(axes, series, score_range(comparison, series), text)
        _plain(axes, f"Validation {setup.watched} by {label}")
    figure.savefig(path, format="png")


def _curves(axes: Any, series: list[Series], limits: tuple[float, float], text: Any) -> None:
    for s in series:
        points = [(x, y) for x, y in s.points if x > 0]
        style: Any = (0, tuple(0.5 * float(d) for d in s.look.dash.split())) if s.look.dash else "solid"
        axes.plot([x for x, _ in points], [y for _, y in points], color=s.look.colour, linewidth=2, linestyle=style,
                  marker=MARKS[s.look.shape], markevery=[-1], markersize=5, label=s.name)  # fmt: skip
    low, high = x_range(series)
    axes.set_xscale("log")
    axes.set_xlim(low, high * 1.06)
    axes.set_ylim(*limits)
    ticks = log_ticks(low, high, 5)
    axes.set_xticks(ticks, [text(x) for x in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(color=LINE, linewidth=0.8)
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK)


def _ranking(axes: Any, comparison: SystemsComparison) -> None:
    """Best on top: the interval and the score on one scale, and the number and the training time beside them."""
    _plain(axes, f"{comparison.setup.metric} on the test data")
    rows = comparison.ranked
    for place, system in enumerate(rows):
        i = comparison.place(system.name)
        mark, colour = MARKS[shape_of(i)], colour_of(i)
        axes.plot([system.low, system.high], [place] * 2, color=colour, linewidth=8, alpha=0.3, solid_capstyle="round")
        axes.plot([system.score], [place], mark, color=colour, markersize=9, markeredgecolor="white")
        for words, points in ((f"{system.score:.1f}", 40), (duration_text(system.seconds), 96)):
            axes.annotate(
                words, (1, place), (points, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                ha="right", va="center_baseline", fontsize=9.5, color=INK, annotation_clip=False,
            )  # fmt: skip
    names = [textwrap.shorten(system.name, 26, placeholder="…") for system in rows]
    axes.set_yticks(range(len(names)), names, fontsize=11, fontweight="bold")
    for tick, system in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(colour_of(comparison.place(system.name)))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=LINE, linewidth=0.8)


def _plain(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=SOFT, pad=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.tick_params(axis="x", which="both", length=0, colors=SOFT, labelsize=9.5)
    axes.tick_params(axis="y", which="both", length=0, labelsize=9.5)
    axes.set_axisbelow(True)
