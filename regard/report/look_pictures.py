"""Views as pictures for a talk: PNG and SVG, drawn by matplotlib without a display."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from regard.files import write_atomically
from regard.lens.look import Panel
from regard.lens.view import View, unpack
from regard.report.figure import clean_axes, drawing, new_figure, show_spaces
from regard.report.lens_pictures import (
    draw_cells,
    draw_gradients,
    draw_layers,
    draw_over_time,
    draw_positions,
    draw_vectors,
)
from regard.report.palette import INK, LINE, SOFT
from regard.score.alignment import word_weights

KINDS = ("png", "svg")
"""Endings of the two files that each picture is drawn into."""
BLUE = "#2166ac"
MAX_PHOTOGRAPHS = 15  # words of a caption that are shown
MAX_LABELS = 60  # words beside a matrix: more cannot be read
PER_INCH = 8.2  # characters of a title
MAX_BARS = 60  # tokens in one picture of surprise: more cannot be read


def draw_picture(view: View, panel: Panel, path: Path, colour: str) -> None:
    """Draw `path` with the endings .png and .svg."""
    with drawing():
        figure = PICTURES[view.name](view, panel, colour)
        figure.draw_without_rendering()
        figure.set_layout_engine(None)  # both files are laid out by now, which takes as long as drawing them
        for kind in KINDS:
            write_atomically(path.with_name(f"{path.name}.{kind}"), partial(figure.savefig, format=kind))


def begin_figure(view: View, panel: Panel, width: float, height: float) -> Any:
    """An empty figure under the model's name and the sentence of the view."""
    return new_figure(width, height, f"{panel.name}: {view.summary}", "", int(PER_INCH * width))


def draw_surprise(view: View, panel: Panel, colour: str) -> Any:
    """Bits of every token as bars."""
    shown = [t for t, span in enumerate(panel.spans) if span is not None][:MAX_BARS]
    figure = begin_figure(view, panel, max(5.0, 1.4 + 0.3 * len(shown)), 3.4)
    axes = figure.subplots()
    axes.bar(range(len(shown)), [view.data["bits"][t] for t in shown], color=colour)
    clean_axes(axes, "bits")
    axes.grid(axis="x", visible=False)
    axes.set_xticks(
        range(len(shown)), [show_spaces(panel.tokens[t]) for t in shown], rotation=60, ha="right", color=SOFT
    )
    return figure


def draw_next(view: View, panel: Panel, colour: str) -> Any:
    """The most probable continuations as bars, a chart for each distribution."""
    kinds = view.data["distributions"]
    width = max(5.5, 3.9 * len(kinds) + 0.6)
    figure = begin_figure(view, panel, width, 3.6)
    for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        names, shares = [show_spaces(text) for text, _ in kind["items"]], [100 * p for _, p in kind["items"]]
        axes.barh(range(len(names)), shares, color=colour)
        clean_axes(axes, f"{kind['name']}, %")
        axes.grid(axis="y", visible=False)
        axes.set_yticks(range(len(names)), names, color=SOFT)
        axes.invert_yaxis()
    return figure


def draw_attention(view: View, panel: Panel, colour: str) -> Any:
    """The chosen head between words, and all heads as small pictures beside it; of several stacks the last."""
    stack = view.data["stacks"][-1]
    layer, head = stack["first"]
    own: dict[str, Any] = {"words": panel.words, "wordTexts": panel.word_texts}
    rows = stack["rows"] or own
    keys = stack["keys"] or rows
    weights = unpack(stack["full"][f"{layer},{head}"].to_json())
    matrix = word_weights(weights, rows["words"], keys["words"])
    small, names = stack["small"], stack["layers"]
    n_heads = max(map(len, small))
    size = min(9.0, max(4.2, 1.6 + 0.2 * len(rows["wordTexts"])))
    figure = begin_figure(view, panel, size + 0.85 * n_heads + 0.6, size + 0.5)
    grid = figure.add_gridspec(len(small), 1 + n_heads, width_ratios=[size / 0.85] + [1.0] * n_heads)
    large = figure.add_subplot(grid[:, 0])
    draw_matrix(large, matrix, rows["wordTexts"], keys["wordTexts"], colour)
    title = f"layer {layer + 1}, head {head + 1}: {names[layer][head]['label']}"
    large.set_title(title, loc="left", fontsize=10, color=SOFT)
    for row, packed in enumerate(small):
        for column, weights_of_head in enumerate(packed):
            axes = figure.add_subplot(grid[row, 1 + column])
            draw_matrix(axes, unpack(weights_of_head.to_json()), (), (), colour)
            axes.set_title(names[row][column]["pattern"], fontsize=6, color=SOFT, pad=2)
    return figure


def draw_alignment(view: View, panel: Panel, colour: str) -> Any:
    """Words that were written against words of the source, with frames around links that are known to be right."""
    rows, columns = view.data["rows"], view.data["columns"]
    width, height = max(5.0, 1.8 + 0.32 * len(columns)), max(3.2, 1.9 + 0.32 * len(rows))
    figure = begin_figure(view, panel, width, height)
    axes = figure.subplots()
    draw_matrix(axes, unpack(view.data["mean"].to_json()), rows, columns, colour)
    for t, s, kind in view.data["gold"] or ():
        axes.add_patch(_frame(s, t, is_sure=kind == "sure"))
    return figure


def draw_influence(view: View, panel: Panel, colour: str) -> Any:
    """What each word has to do with the prediction, as bars to both sides."""
    name, scores = next(iter(view.data["methods"].items()))
    words = view.data["words"]
    shown = range(max(0, len(words) - MAX_BARS), len(words))
    figure = begin_figure(view, panel, max(5.0, 1.4 + 0.3 * len(shown)), 3.4)
    axes = figure.subplots()
    axes.bar(range(len(shown)), [scores[i] for i in shown], color=["#d9730d" if scores[i] > 0 else BLUE for i in shown])
    clean_axes(axes, f"{name}: by how much {view.data['unit']} falls without the word")
    axes.axhline(0, color=LINE)
    axes.grid(axis="x", visible=False)
    axes.set_xticks(range(len(shown)), [show_spaces(words[i]) for i in shown], rotation=60, ha="right", color=SOFT)
    return figure


def draw_faithfulness(view: View, panel: Panel, colour: str) -> Any:
    """What attention, gradients and erasure say of each word, as bars side by side."""
    words, shares = view.data["words"], view.data["shares"]
    shown = range(max(0, len(words) - MAX_BARS), len(words))
    figure = begin_figure(view, panel, max(6.5, 1.4 + 0.36 * len(shown)), 3.8)
    axes = figure.subplots()
    for k, (name, paint) in enumerate(zip(shares, ("#2166ac", "#d9730d", "#9aa0a6"), strict=True)):
        places = [i + 0.27 * (k - 1) for i in range(len(shown))]
        axes.bar(places, [100 * shares[name][i] for i in shown], width=0.25, color=paint, label=name)
    clean_axes(axes, "share, %")
    axes.grid(axis="x", visible=False)
    axes.legend(frameon=False, fontsize=8)
    axes.set_xticks(range(len(shown)), [show_spaces(words[i]) for i in shown], rotation=60, ha="right", color=SOFT)
    return figure


def _frame(column: int, row: int, is_sure: bool) -> Any:
    from matplotlib.patches import Rectangle  # here: it takes long to start

    style: Any = "solid" if is_sure else "dashed"
    return Rectangle((column - 0.42, row - 0.42), 0.84, 0.84, fill=False, edgecolor=INK, linewidth=1.4, linestyle=style)


def draw_photograph(view: View, panel: Panel, colour: str) -> Any:
    """The picture once for every word, bright where it looked."""
    words, weights = view.data["words"], unpack(view.data["weights"].to_json())
    photograph = _read_photograph(view.data["picture"])
    n = min(len(words), MAX_PHOTOGRAPHS)
    n_columns = min(n, 5)
    n_rows = -(-n // n_columns)
    figure = begin_figure(view, panel, max(5.0, 2.1 * n_columns), 2.3 * n_rows + 0.8)
    height, width = photograph.shape[:2]
    for i, axes in enumerate(figure.subplots(n_rows, n_columns, squeeze=False).flat):
        axes.axis("off")
        if i < n:
            axes.imshow(photograph)
            dark = 1 - weights[i] / weights[i].max()
            axes.imshow(
                0 * dark, cmap="gray", alpha=0.85 * dark, extent=(0, width, height, 0), interpolation="bilinear"
            )
            axes.set_title(show_spaces(words[i]), fontsize=10, color=INK)
    return figure


def _read_photograph(uri: str) -> Any:
    import numpy as np  # with Pillow, which takes long to start
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def draw_matrix(axes: Any, weights: Any, rows: Sequence[str], columns: Sequence[str], colour: str) -> None:
    """Weights between 0 and 1 as squares; their roots, so that small ones are seen. Labels where they can be read."""
    from matplotlib.colors import LinearSegmentedColormap  # here: it takes long to start

    shades = LinearSegmentedColormap.from_list("weights", ["#ffffff", colour])
    axes.imshow(weights**0.5, cmap=shades, vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    has_labels = 0 < len(rows) <= MAX_LABELS and len(columns) <= MAX_LABELS
    font = {"fontsize": 8, "color": SOFT}
    axes.set_yticks(range(len(rows)) if has_labels else [], map(show_spaces, rows) if has_labels else [], **font)
    axes.set_xticks(
        range(len(columns)) if has_labels else [], map(show_spaces, columns) if has_labels else [], rotation=90, **font
    )
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_color(LINE)


PICTURES: dict[str, Callable[[View, Panel, str], Any]] = {
    "next": draw_next, "surprise": draw_surprise, "layers": draw_layers, "attention": draw_attention,
    "alignment": draw_alignment, "picture": draw_photograph,
    "influence": draw_influence, "faithfulness": draw_faithfulness,
    "cells": draw_cells, "vectors": draw_vectors, "gradients": draw_gradients, "positions": draw_positions,
    "over-time": draw_over_time,
}  # fmt: skip
"""The views that have a picture."""
