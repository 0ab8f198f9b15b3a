"""The comparison as one picture for a README or a talk: learning curves, and the ranking with its intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison
from regard.report.chart import apart, curve_range, log_ticks, x_range
from regard.report.curves import learning_series
from regard.report.figure import MARKS, clean_axes, draw_series, fill_evenly, new_figure
from regard.report.palette import INK, SOFT, Look, looks_of

MAX_TITLE = 90  # characters of a title line that the picture is wide enough for
MAX_NAME = 24  # characters of a name that leave room for the panels
ROW = 0.3  # inches a contender


def write_overview(comparison: Comparison, path: Path) -> None:
    """Draw `path` (PNG): two panels, every contender in its look. No display is needed."""
    draw_overview(comparison).savefig(path, format="png")


def draw_overview(comparison: Comparison) -> Any:
    """The figure, which grows with the number of contenders."""
    looks, setup = looks_of(c.name for c in comparison.contenders), comparison.setup
    title, n = comparison.headline[0], len(setup.seeds)
    height = max(4.9, 1.3 + 0.26 * len(fill_evenly(title, MAX_TITLE)) + ROW * (len(comparison.ranked) + 1))
    note = (
        f"{setup.budget} and {count_text(setup.n_parameters)} parameters for each of {n} seed{'s' * (n != 1)}; "
        f"bars are 95% intervals over test blocks{' and seeds' * (n != 1)}"
    )
    figure = new_figure(12, height, title, note, MAX_TITLE)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    _draw_ranking(right, comparison, looks)
    labels = _draw_curves(left, comparison, looks)
    figure.draw_without_rendering()  # only now is it known how high the panels are
    _spread(left, labels)
    return figure


def _draw_curves(axes: Any, comparison: Comparison, looks: Mapping[str, Look]) -> list[Any]:
    """Draw the lines, and return their names as labels that are still to be pushed apart."""
    clean_axes(axes, "Bits per byte on the validation text, by training tokens")
    series = learning_series(comparison, "tokens", looks)
    draw_series(axes, series)
    if not series:
        return []
    axes.set_xscale("log")
    low, high = x_range(series)
    axes.set_xlim(low, high * 1.06)
    axes.set_ylim(*curve_range(series))
    ticks = log_ticks(low, high, 6)
    axes.set_xticks(ticks, [count_text(x) for x in ticks])
    axes.set_xticks([], minor=True)
    size = 11 if len(series) <= 8 else 10
    return [
        axes.annotate(
            _short(s.name), xy=s.points[-1], xytext=(1.035, s.points[-1][1]), textcoords=("axes fraction", "data"),
            color=s.look.colour, fontsize=size, fontweight="bold", va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": s.look.colour, "alpha": 0.45, "linewidth": 0.8, "relpos": (0, 0.5)},
        )
        for s in sorted(series, key=lambda s: s.points[-1][1])
    ]  # fmt: skip


def _spread(axes: Any, labels: list[Any]) -> None:
    """Push the names at the line ends apart, so that none covers another and none leaves the panel."""
    if not labels:
        return
    from matplotlib.text import Text

    low, high = axes.get_ylim()
    pixels = max(Text.get_window_extent(label).height for label in labels)  # of the name without its leader
    height = pixels / axes.get_window_extent().height * (high - low)  # in bits
    places = apart([label.xyann[1] for label in labels], 1.02 * height, low + height / 2, high - height / 2)
    for label, place in zip(labels, places, strict=True):
        label.xyann = (label.xyann[0], place)


def _draw_ranking(axes: Any, comparison: Comparison, looks: Mapping[str, Look]) -> None:
    """Best on top: the interval and the mean on one scale; the numbers stand in columns right of it."""
    clean_axes(axes, "Bits per byte on the test text (lower is better)")
    rows = comparison.ranked
    for place, contender in enumerate(rows):
        score, look = contender.score, looks[contender.name]
        assert score is not None
        bar = {"linewidth": 8, "alpha": 0.3, "solid_capstyle": "round"}
        axes.plot([score.low, score.high], [place, place], color=look.colour, **bar)
        axes.plot(
            [score.bits_per_byte], [place], MARKS[look.shape], color=look.colour, markersize=9, markeredgecolor="white"
        )
        _beside(axes, place, f"{score.bits_per_byte:.3f}", duration_text(score.seconds), INK)
    top = -0.65 - 0.03 * len(rows)  # leaves a line for the heads of the columns
    if rows:
        _beside(axes, top, "score", "time", SOFT, "top")
    names = [_short(c.name) + ("" if c.is_comparable else " †") for c in rows]
    axes.set_yticks(range(len(names)), names, fontsize=11.5 if len(names) <= 8 else 10.5, fontweight="bold")
    for tick, contender in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(looks[contender.name].colour)
    axes.set_ylim(len(names) - 0.4, top)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(visible=False, axis="y")


def _beside(axes: Any, place: float, score: str, time: str, colour: str, va: str = "center_baseline") -> None:
    for text, points in ((score, 46), (time, 104)):
        axes.annotate(
            text, (1, place), (points, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
            va=va, fontsize=9.5, color=colour, annotation_clip=False,
        )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
