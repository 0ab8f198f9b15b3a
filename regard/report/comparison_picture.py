"""The comparison as one picture for a README or a talk: learning curves, and the ranking with its intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.compare.result import Comparison
from regard.report.chart import Series, apart, log_ticks, x_range
from regard.report.curves import AXES, learning_series, score_range
from regard.report.figure import MARKS, clean_axes, draw_series, drawing, fill_evenly, new_figure, show_spaces
from regard.report.palette import INK, SOFT, Look, looks_of
from regard.score.figures import count_text, duration_text, or_dash

MAX_TITLE = 90  # characters of a title line that a picture of 12 inches is wide enough for
MAX_NAME = 24  # characters of a name that leave room for the panels
ROW = 0.3  # inches a contender


@drawing()
def write_overview(comparison: Comparison, path: Path) -> None:
    """Draw `path` (PNG): every contender in its look. No display is needed."""
    draw_overview(comparison).savefig(path, format="png")


def draw_overview(comparison: Comparison) -> Any:
    """The figure, which grows with the number of contenders.

    Under one budget all learn from about as many tokens; finished runs are shown by FLOPs and by time.
    """
    looks, title = looks_of(c.name for c in comparison.contenders), comparison.headline[0]
    axes_names = ["tokens"] if comparison.setup.training is not None else ["flops", "seconds"]
    if comparison.setup.training is None and not any(c.curve for c in comparison.contenders):
        axes_names = []
    width = {0: 7.0, 1: 12.0, 2: 17.0}[len(axes_names)]
    max_title = round(MAX_TITLE * width / 12)
    height = max(4.9, 1.3 + 0.26 * len(fill_evenly(title, max_title)) + ROW * (len(comparison.ranked) + 1))
    figure = new_figure(width, height, title, _write_note(comparison), max_title)
    ratios = [1.3] * len(axes_names) + [1]
    *curves, last = figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
    _draw_ranking(last, comparison, looks)
    labels = []
    for place, (axes, name) in enumerate(zip(curves, axes_names, strict=True)):
        labels = _draw_curves(axes, comparison, name, looks, has_names=place + 1 == len(curves))
    figure.draw_without_rendering()  # only now is it known how high the panels are
    if labels:
        _spread(curves[-1], labels)
    return figure


def _write_note(comparison: Comparison) -> str:
    setup = comparison.setup
    if (training := setup.training) is None:
        how = f", {setup.decoding}" if setup.decoding else ""
        return f"{setup.metric} of {setup.n_tested:,} test {setup.items}{how}; bars are 95% intervals over them"
    n = len(training.seeds)
    size = "" if training.n_parameters is None else f" and {count_text(training.n_parameters)} parameters"
    return (
        f"{training.budget}{size} for each of {n} seed{'s' * (n != 1)}; bars are 95% intervals over test {setup.items}"
        f"{' and seeds' * (n != 1)}"
    )


def _draw_curves(axes: Any, comparison: Comparison, axis: str, looks: Mapping[str, Look], has_names: bool) -> list[Any]:
    """Draw the lines, and return their names as labels that are still to be pushed apart."""
    watched, (form, text) = comparison.setup.watched_measure, AXES[axis]
    label = form.format(unit=comparison.setup.unit)
    clean_axes(axes, f"{watched.name[:1].upper() + watched.name[1:]} on the validation data, by {label}")
    series = [
        Series(s.name, s.look, points, [row for row in s.band if row[0] > 0])
        for s in learning_series(comparison, axis, looks)
        if (points := [(x, y) for x, y in s.points if x > 0])
    ]
    draw_series(axes, series)
    if not series:
        return []
    axes.set_xscale("log")
    low, high = x_range(series)
    axes.set_xlim(low, high * 1.06)
    axes.set_ylim(*score_range(watched, series))
    ticks = log_ticks(low, high, 6)
    axes.set_xticks(ticks, [text(x) for x in ticks])
    axes.set_xticks([], minor=True)
    size = 11 if len(series) <= 8 else 10
    return [
        axes.annotate(
            show_spaces(s.name, MAX_NAME), xy=s.points[-1], xytext=(1.035, s.points[-1][1]),
            textcoords=("axes fraction", "data"), color=s.look.colour, fontsize=size, fontweight="bold", va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": s.look.colour, "alpha": 0.45, "linewidth": 0.8, "relpos": (0, 0.5)},
        )
        for s in sorted(series, key=lambda s: s.points[-1][1])
        if has_names
    ]  # fmt: skip


def _spread(axes: Any, labels: list[Any]) -> None:
    """Push the names at the line ends apart, so that none covers another and none leaves the panel."""
    from matplotlib.text import Text  # slow to import

    low, high = axes.get_ylim()
    pixels = max(Text.get_window_extent(label).height for label in labels)  # of the name without its leader
    height = pixels / axes.get_window_extent().height * (high - low)  # in units of the score
    places = apart([label.xyann[1] for label in labels], 1.02 * height, low + height / 2, high - height / 2)
    for label, place in zip(labels, places, strict=True):
        label.xyann = (label.xyann[0], place)


def _draw_ranking(axes: Any, comparison: Comparison, looks: Mapping[str, Look]) -> None:
    """Best on top: the interval and the mean on one scale; the numbers stand in columns right of it."""
    measure, rows = comparison.setup.measure, comparison.ranked
    name = measure.name[:1].upper() + measure.name[1:]
    clean_axes(axes, f"{name} on the test data ({measure.direction})")
    for place, contender in enumerate(rows):
        score, look = contender.score, looks[contender.name]
        assert score is not None
        bar = {"linewidth": 8, "alpha": 0.3, "solid_capstyle": "round"}
        axes.plot([score.low, score.high], [place, place], color=look.colour, **bar)
        axes.plot([score.value], [place], MARKS[look.shape], color=look.colour, markersize=9, markeredgecolor="white")
        _write_beside(axes, place, measure.value(score.value), or_dash(duration_text, contender.seconds), INK)
    top = -0.65 - 0.03 * len(rows)  # leaves a line for the heads of the columns
    if rows:
        _write_beside(axes, top, "score", "time", SOFT, "top")
    names = [show_spaces(c.name, MAX_NAME) + (" †" if c.lossy else "") for c in rows]
    axes.set_yticks(range(len(names)), names, fontsize=11.5 if len(names) <= 8 else 10.5, fontweight="bold")
    for tick, contender in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(looks[contender.name].colour)
    axes.set_ylim(len(names) - 0.4, top)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(visible=False, axis="y")


def _write_beside(axes: Any, place: float, score: str, time: str, colour: str, va: str = "center_baseline") -> None:
    for text, points in ((score, 46), (time, 104)):
        axes.annotate(
            text, (1, place), (points, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
            va=va, fontsize=9.5, color=colour, annotation_clip=False,
        )  # fmt: skip
