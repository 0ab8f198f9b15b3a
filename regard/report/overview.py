"""The comparison as one picture for a README or a talk: learning curves, and the ranking with its intervals."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison
from regard.report.chart import Series, apart, curve_range, log_ticks, x_range
from regard.report.curves import mean_curve
from regard.report.palette import colour_of, dash_of, shape_of

INK, SOFT, LINE = "#1c1e21", "#5d6470", "#e3e5e8"
MAX_TITLE = 90  # characters of a title line that the picture is wide enough for
MAX_NAME = 24  # characters of a name that leave room for the panels
MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
ROW = 0.3  # inches a contender


def write_overview(comparison: Comparison, path: Path) -> None:
    """Draw `path` (PNG): two panels, one colour a contender as in the report. No display is needed."""
    draw_overview(comparison).savefig(path, format="png")


def draw_overview(comparison: Comparison) -> Any:
    """The figure, which grows with the number of contenders."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    title = _filled(comparison.headline[0])
    height = max(4.9, 1.3 + 0.26 * len(title) + ROW * (len(comparison.ranked) + 1))
    figure = Figure(figsize=(12, height), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.25, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    figure.suptitle("\n".join(title), x=0.012, ha="left", fontsize=15, fontweight="bold", color=INK)
    setup = comparison.setup
    n = len(setup.seeds)
    figure.supxlabel(
        f"{setup.budget} and {count_text(setup.n_parameters)} parameters for each of {n} seed{'s' * (n != 1)}; "
        f"bars are 95% intervals over test blocks{' and seeds' * (n != 1)}",
        x=0.012, ha="left", fontsize=9.5, color=SOFT,
    )  # fmt: skip
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    _ranking(right, comparison)
    labels = _curves(left, comparison)
    figure.draw_without_rendering()  # only now is it known how high the panels are
    _spread(left, labels)
    return figure


def _filled(sentence: str) -> list[str]:
    """The sentence in as few lines as fit, of about one length, so that no word stands alone on the last."""
    n_lines = len(textwrap.wrap(sentence, MAX_TITLE))
    widths = range(-(-len(sentence) // n_lines), MAX_TITLE + 1)
    return next(lines for width in widths if len(lines := textwrap.wrap(sentence, width)) == n_lines)


def _curves(axes: Any, comparison: Comparison) -> list[Any]:
    """Draw the lines, and return their names as labels that are still to be pushed apart."""
    series = []
    for i, contender in enumerate(comparison.contenders):
        rows = mean_curve([s.curve for s in contender.seeds], "tokens")
        if not rows:
            continue
        xs, means, lows, highs = (list(column) for column in zip(*rows, strict=True))
        dash = dash_of(i)
        style: Any = (0, tuple(0.5 * float(d) for d in dash.split())) if dash else "solid"  # in widths of the line
        axes.plot(xs, means, color=colour_of(i), linewidth=2, linestyle=style, solid_capstyle="round")
        axes.fill_between(xs, lows, highs, color=colour_of(i), alpha=0.14, linewidth=0)
        axes.plot(xs[-1:], means[-1:], MARKS[shape_of(i)], color=colour_of(i), markersize=5)
        series.append(Series(contender.name, colour_of(i), dash, list(zip(xs, means, strict=True))))
    _plain(axes, "Bits per byte on the validation text, by training tokens")
    if not series:
        return []
    axes.set_xscale("log")
    low, high = x_range(series)
    axes.set_xlim(low, high * 1.06)
    axes.set_ylim(*curve_range(series))
    ticks = log_ticks(low, high, 6)
    axes.set_xticks(ticks, [count_text(x) for x in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(color=LINE, linewidth=0.8)
    size = 11 if len(series) <= 8 else 10
    return [
        axes.annotate(
            _short(s.name), xy=s.points[-1], xytext=(1.035, s.points[-1][1]), textcoords=("axes fraction", "data"),
            color=s.colour, fontsize=size, fontweight="bold", va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": s.colour, "alpha": 0.45, "linewidth": 0.8, "relpos": (0, 0.5)},
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


def _ranking(axes: Any, comparison: Comparison) -> None:
    """Best on top: the interval and the mean on one scale; the numbers stand in columns right of it."""
    _plain(axes, "Bits per byte on the test text (lower is better)")
    order = [c.name for c in comparison.contenders]
    rows = comparison.ranked
    for place, contender in enumerate(rows):
        score = contender.score
        assert score is not None
        i = order.index(contender.name)
        mark, colour = MARKS[shape_of(i)], colour_of(i)
        axes.plot([score.low, score.high], [place, place], color=colour, linewidth=8, alpha=0.3, solid_capstyle="round")
        axes.plot([score.bits_per_byte], [place], mark, color=colour, markersize=9, markeredgecolor="white")
        _beside(axes, place, f"{score.bits_per_byte:.3f}", duration_text(score.seconds), INK)
    top = -0.65 - 0.03 * len(rows)  # leaves a line for the heads of the columns
    if rows:
        _beside(axes, top, "score", "time", SOFT, "top")
    names = [_short(c.name) + ("" if c.is_comparable else " †") for c in rows]
    axes.set_yticks(range(len(names)), names, fontsize=11.5 if len(names) <= 8 else 10.5, fontweight="bold")
    for tick, contender in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(colour_of(order.index(contender.name)))
    axes.set_ylim(len(names) - 0.4, top)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=LINE, linewidth=0.8)


def _beside(axes: Any, place: float, score: str, time: str, colour: str, va: str = "center_baseline") -> None:
    for text, points in ((score, 46), (time, 104)):
        axes.annotate(
            text, (1, place), (points, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
            va=va, fontsize=9.5, color=colour, annotation_clip=False,
        )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def _plain(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=SOFT, pad=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.tick_params(which="both", length=0, colors=SOFT, labelsize=10)
    axes.set_axisbelow(True)
