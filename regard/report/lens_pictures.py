"""Pictures of cells, vectors, gradients, positions and of how a run learned, drawn from their views by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.lens.look import Panel
from regard.lens.view import View
from regard.report.figure import clean_axes, fonts_of, log_y, new_figure, show_spaces
from regard.report.palette import COLOURS, INK, SOFT, diverging

COLUMNS = 84  # characters in a line of coloured text
MAX_LINES = 16
PER_INCH = 7.5  # characters of a title
GREY = "#c3c8ce"
MAX_PLACES = 24  # rows of a picture of layers
MAX_LETTERS = 12  # of a token in it


def draw_cells(view: View, panel: Panel, colour: str) -> Any:
    """The passage of the best unit, every character coloured by its value."""
    cell = view.data["cells"][0]
    lines = wrap_tokens(cell["tokens"], cell["values"])[:MAX_LINES]
    figure = _begin(view, panel, 9.6, 1.5 + 0.24 * len(lines))
    axes, fonts = figure.subplots(), fonts_of("monospace")
    for row, line in enumerate(lines):
        for column, (character, value) in enumerate(line):
            axes.add_patch(_rectangle(column, -row - 1, diverging(value)))
            ink = "white" if abs(value) > 0.72 else INK
            shown = show_character(character)
            axes.text(column + 0.5, -row - 0.55, shown, ha="center", va="center", fontsize=8, color=ink,
                      family=fonts)  # fmt: skip
    axes.set(xlim=(0, COLUMNS), ylim=(-len(lines), 0))
    axes.axis("off")
    return figure


def show_character(character: str) -> str:
    """A character as it is drawn: spaces of every script are blank, and what commands a terminal is a box.

    >>> [show_character(c) for c in "a\\n\\u3000\\x1b"]
    ['a', '⏎', ' ', '�']
    """
    if character == "\n":
        return "⏎"
    return " " if character.isspace() else character if character.isprintable() else "�"


def _begin(view: View, panel: Panel, width: float, height: float) -> Any:
    return new_figure(width, height, f"{panel.name}: {view.summary}", "", int(PER_INCH * width))


def wrap_tokens(tokens: list[str], values: list[float]) -> list[list[tuple[str, float]]]:
    """Characters with the value of their token, in lines that end where the text's do, or are full."""
    lines: list[list[tuple[str, float]]] = [[]]
    for token, value in zip(tokens, values, strict=True):
        for character in token:
            if len(lines[-1]) >= COLUMNS:
                lines.append([])
            lines[-1].append((character, value))
            if character == "\n":
                lines.append([])
    return [line for line in lines if line]


def _rectangle(x: float, y: float, colour: Any, width: float = 1.0, height: float = 1.0) -> Any:
    from matplotlib.patches import Rectangle  # here: it takes long to start

    return Rectangle((x, y), width, height, color=colour, linewidth=0)


def draw_gradients(view: View, panel: Panel, colour: str) -> Any:
    """The norm by distance, and by layer."""
    figure = _begin(view, panel, 9.6, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    curve = view.data["curve"]
    left.plot(range(len(curve)), curve, color=colour, marker="o", markersize=3)
    log_y(left)
    clean_axes(left, "norm of the gradient, by steps back")
    layers = view.data["layers"]
    right.barh([name for name, _ in layers][::-1], [value for _, value in layers][::-1], color=colour)
    clean_axes(right, "at what each layer gives")
    return figure


def draw_positions(view: View, panel: Panel, colour: str) -> Any:
    """The first table, its products, and the cosine by offset."""
    table = view.data["tables"][0]
    figure = _begin(view, panel, 11, 4.1)
    left, middle, right = figure.subplots(1, 3)
    for axes, values, title in ((left, table["table"].array, "P: positions by numbers"),
                                (middle, table["products"].array, "P Pᵀ")):  # fmt: skip
        _draw_signed(axes, values, title)
    right.plot(table["mean"], color=colour, label="this table")
    right.plot(table["fixed"], color=GREY, linestyle="dashed", label="sinusoids")
    right.legend(frameon=False, fontsize=9)
    clean_axes(right, "cosine, by positions apart")
    return figure


def draw_layers(view: View, panel: Panel, colour: str) -> Any:
    """The first choice of every layer at the last places of the text; bold where it is what came."""
    places, layers = view.data["places"][-MAX_PLACES:], view.data["layers"]
    width = max(6.0, 1.7 + 1.55 * (len(layers) + 1))
    figure = _begin(view, panel, width, 1.5 + 0.27 * len(places))
    axes, fonts = figure.subplots(), fonts_of("monospace")
    rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    for row, place in enumerate(places):
        for column, best in enumerate(place["best"]):
            (text, p), *_ = best
            strength = 0.55 * p**0.5
            fill = [1 + (part - 1) * strength for part in rgb]
            axes.add_patch(_rectangle(column + 0.02, row + 0.06, fill, 0.96, 0.88))
            weight = "bold" if place["isOwn"][column] else "normal"
            said = f"{show_spaces(text, MAX_LETTERS)}  {p:.0%}"
            axes.text(column + 0.06, row + 0.5, said, va="center", fontsize=8, color=INK, family=fonts,
                      weight=weight)  # fmt: skip
        came = "?" if place["came"] is None else show_spaces(place["came"], MAX_LETTERS)
        axes.text(len(layers) + 0.1, row + 0.5, came, va="center", fontsize=8, color=INK, family=fonts)
    axes.set(xlim=(0, len(layers) + 1), ylim=(len(places), 0))
    axes.set_xticks([i + 0.5 for i in range(len(layers) + 1)], [*layers, "what came"], color=SOFT)
    axes.set_yticks(
        [i + 0.5 for i in range(len(places))],
        [f"{view.data['where']} {show_spaces(p['read'], MAX_LETTERS)}" for p in places],
        color=SOFT,
    )
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure


def _draw_signed(axes: Any, values: Any, title: str) -> None:
    top = max(float(np.abs(values).max()), 1e-12)
    pixels = [[tuple(int(diverging(v / top)[i : i + 2], 16) for i in (1, 3, 5)) for v in row] for row in values]
    axes.imshow(np.array(pixels, dtype=np.uint8), aspect="auto", interpolation="nearest")
    clean_axes(axes, title)
    axes.grid(visible=False)


def draw_vectors(view: View, panel: Panel, colour: str) -> Any:
    """The map of the last layer, and cosines by layer."""
    data = view.data
    figure = _begin(view, panel, 10.4, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for point in data["maps"][-1]:
        k = point["occurrence"]
        ink = SOFT if k is None else COLOURS[k % 8]
        left.scatter(point["x"], point["y"], s=14 if k is None else 60, color=GREY if k is None else ink)
        name = point["word"] if k is None else f"{k + 1} {point['word']}"
        is_left = k is not None and _has_close_right(point, data["maps"][-1])
        left.annotate(show_spaces(name), (point["x"], point["y"]), xytext=(-6 if is_left else 4, 3),
                      textcoords="offset points", ha="right" if is_left else "left",
                      fontsize=8 if k is None else 10, color=ink)  # fmt: skip
    clean_axes(left, f"after {data['layers'][-1]}")
    left.set_xticks([])
    left.set_yticks([])
    for k in range(len(data["occurrences"]) if data["toType"] else 0):
        right.plot([row[k] for row in data["toType"]], color=COLOURS[k % 8], marker="o", markersize=4)
    right.plot(data["anyTwo"], color=GREY, linestyle="dashed", label="any two words")
    right.legend(frameon=False, fontsize=9)
    right.set_xticks(range(len(data["anyTwo"])))
    clean_axes(right, "cosine of type and token, by layer")
    return figure


def _has_close_right(point: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> bool:
    """Whether another occurrence stands where the label of this one would: its own then goes to the left.

    >>> near, far = {"x": 0.1, "y": 0.0, "occurrence": 1}, {"x": 1.0, "y": 1.0, "occurrence": 2}
    >>> [_has_close_right(p, [near, far]) for p in ({"x": 0.0, "y": 0.0, "occurrence": 0}, near)]
    [True, False]
    """
    width, height = (max(p[axis] for p in points) - min(p[axis] for p in points) or 1.0 for axis in ("x", "y"))
    others = [p for p in points if p["occurrence"] not in (None, point["occurrence"])]
    return any(0 <= p["x"] - point["x"] < 0.15 * width and abs(p["y"] - point["y"]) < 0.06 * height for p in others)


def draw_over_time(view: View, panel: Panel, colour: str) -> Any:
    """Loss, the norm of the gradient, and the text's bits, by step."""
    data = view.data
    figure = _begin(view, panel, 11, 3.7)
    left, middle, right = figure.subplots(1, 3)
    for name, ink in (("train", GREY), ("valid", colour)):
        if points := data["curves"][name]:
            left.plot(*zip(*points, strict=True), color=ink, label={"train": "training", "valid": "validation"}[name])
    left.legend(frameon=False, fontsize=9)
    clean_axes(left, "loss, by step")
    if points := data["curves"]["grad_norm"]:
        middle.plot(*zip(*points, strict=True), color=colour)
        log_y(middle)
    clean_axes(middle, "norm of an update's gradient, by step")
    for k, curve in enumerate(data["gradients"]):
        if curve:
            is_last = k == len(data["gradients"]) - 1
            right.plot(curve, color=colour if is_last else GREY, linewidth=2 if is_last else 1)
            log_y(right)
    clean_axes(right, "gradient, by steps back")
    return figure
