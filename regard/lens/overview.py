"""The comparison as one picture for a README or a talk: learning curves, and the ranking with its intervals."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison
from regard.lens.page.chart import Series, curve_range, x_range
from regard.lens.page.curves import mean_curve
from regard.lens.page.palette import colour_of, dash_of

INK, SOFT, LINE = "#1c1e21", "#5d6470", "#e3e5e8"
MAX_TITLE = 88  # characters of a title line that the picture is wide enough for


def write_overview(comparison: Comparison, path: Path) -> None:
    """Draw `path` (PNG): two panels, one colour a contender as in the report. No display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.9), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    _curves(left, comparison)
    _ranking(right, comparison)
    figure.get_layout_engine().set(w_pad=0.25, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    setup = comparison.setup
    n = len(setup.seeds)
    title = textwrap.fill(comparison.headline[0], MAX_TITLE)
    figure.suptitle(title, x=0.012, ha="left", fontsize=15, fontweight="bold", color=INK)
    figure.supxlabel(
        f"{setup.budget} and {count_text(setup.n_parameters)} parameters for each of {n} seed{'s' * (n != 1)}; "
        f"bars are 95% intervals over test blocks{' and seeds' * (n != 1)}",
        x=0.012, ha="left", fontsize=9.5, color=SOFT,
    )  # fmt: skip
    figure.savefig(path, format="png")


def _curves(axes: Any, comparison: Comparison) -> None:
    series = []
    for i, contender in enumerate(comparison.contenders):
        rows = mean_curve([s.curve for s in contender.seeds], "tokens")
        if not rows:
            continue
        xs, means, lows, highs = (list(column) for column in zip(*rows, strict=True))
        dash = dash_of(i)
        style: Any = (0, tuple(float(d) for d in dash.split())) if dash else "solid"
        axes.plot(xs, means, color=colour_of(i), linewidth=2.2, linestyle=style, solid_capstyle="round")
        axes.fill_between(xs, lows, highs, color=colour_of(i), alpha=0.16, linewidth=0)
        axes.plot(xs[-1:], means[-1:], "o", color=colour_of(i), markersize=5)
        series.append(Series(contender.name, colour_of(i), dash, list(zip(xs, means, strict=True))))
    _plain(axes, "Bits per byte on the validation text, by training tokens")
    if not series:
        return
    axes.set_xscale("log")
    low, high = x_range(series)
    axes.set_xlim(low, high * 1.06)
    axes.set_ylim(*curve_range(series))
    axes.xaxis.set_major_formatter(lambda x, _: count_text(x))
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.grid(color=LINE, linewidth=0.8)
    _label_ends(axes, series)


def _label_ends(axes: Any, series: list[Series]) -> None:
    """Names right of the panel, in the order of the last values, pushed apart so that none covers another."""
    low, high = axes.get_ylim()
    spacing = (high - low) * 0.062
    right = max(s.points[-1][0] for s in series)
    at = float("-inf")
    for s in sorted(series, key=lambda s: s.points[-1][1]):
        x, y = s.points[-1]
        at = max(y, at + spacing)
        line = {"arrowstyle": "-", "color": s.colour, "alpha": 0.4, "linewidth": 0.8}
        axes.annotate(
            s.name, xy=(x, y), xytext=(right * 1.12, at), color=s.colour, fontsize=11, fontweight="bold", va="center",
            arrowprops=line, annotation_clip=False,
        )  # fmt: skip


def _ranking(axes: Any, comparison: Comparison) -> None:
    _plain(axes, "Bits per byte on the test text (lower is better)")
    order = [c.name for c in comparison.contenders]
    for place, contender in enumerate(comparison.ranked):
        score = contender.score
        assert score is not None
        colour = colour_of(order.index(contender.name))
        axes.plot([score.low, score.high], [place, place], color=colour, linewidth=8, alpha=0.3, solid_capstyle="round")
        axes.plot([score.bits_per_byte], [place], "o", color=colour, markersize=9, markeredgecolor="white")
        label = f"{score.bits_per_byte:.3f}  ·  {duration_text(score.seconds)}"
        axes.annotate(label, (score.bits_per_byte, place), (0, 11), textcoords="offset points", ha="center",
                      fontsize=9.5, color=SOFT)  # fmt: skip
    names = [c.name + ("" if c.is_comparable else " †") for c in comparison.ranked]
    axes.set_yticks(range(len(names)), names, fontsize=11.5, fontweight="bold")
    for tick, contender in zip(axes.get_yticklabels(), comparison.ranked, strict=True):
        tick.set_color(colour_of(order.index(contender.name)))
    axes.set_ylim(len(names) - 0.4, -0.7)
    axes.margins(x=0.16)
    axes.grid(axis="x", color=LINE, linewidth=0.8)


def _plain(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=SOFT, pad=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.tick_params(which="both", length=0, colors=SOFT, labelsize=10)
    axes.set_axisbelow(True)
