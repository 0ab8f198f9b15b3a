"""Looking inside: attention maps, and texts coloured by one cell."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from regard.compare.result import Comparison
from regard.lens.views import AttentionView, CellTrace, CellView
from regard.report.palette import Look, diverging
from regard.report.shell import Tab, tabs
from regard.report.surprise import column_width

Data = list[dict[str, object]]
"""What the page's script draws from."""


def attention_figure(comparison: Comparison, looks: Mapping[str, Look]) -> tuple[str, Data]:
    """A frame for every contender that attends, best first; the page's script draws the maps from the weights."""
    panels: list[Tab] = []
    data: Data = []
    for contender in comparison.ranked:
        view, colour = contender.views.attention, looks[contender.name].colour
        if view is None:
            continue
        k = len(panels)
        data.append({"tokens": view.tokens, "weights": view.weights, "colour": colour, "start": choose_head(view)})
        body = (
            f'<div class="attention" data-attention="{k}"><div class="map"></div>'
            f'<div class="side"><p class="which"></p><p class="reads"></p><div class="heads"></div></div></div>'
        )
        panels.append(Tab(f"attention-{k}", contender.name, body, colour))
    return tabs(panels), data


def choose_head(view: AttentionView) -> tuple[int, int]:
    """The head to show first: the one that puts the most weight on a token that is neither itself nor the first.

    Heads that only look at themselves, or park on the first token, are common and say little.
    """
    best, chosen = -1.0, (0, 0)
    for layer, heads in enumerate(view.weights):
        for head, rows in enumerate(heads):
            peaks = [max(row[1:-1]) for row in rows if len(row) > 2]
            focus = sum(peaks) / len(peaks) if peaks else 0.0
            if focus > best:
                best, chosen = focus, (layer, head)
    return chosen


def cells_figure(comparison: Comparison, looks: Mapping[str, Look]) -> tuple[str, Data]:
    """The passage coloured by one cell, with a button for every cell that was found to track something."""
    shown = [(c, c.views.cells) for c in comparison.ranked if c.views.cells is not None and c.views.cells.traces]
    appeal = [(view.tap == "cell", abs(view.traces[0].score)) for _, view in shown]
    panels = [
        Tab(f"cells-{k}", c.name, _coloured_text(view, k), looks[c.name].colour) for k, (c, view) in enumerate(shown)
    ]
    data: Data = [{"values": [t.values for t in view.traces]} for _, view in shown]
    return tabs(panels, appeal.index(max(appeal)) if appeal else 0), data


def _coloured_text(view: CellView, k: int) -> str:
    buttons = "".join(
        f'<button data-trace="{t}"{" class=on" if t == 0 else ""}>{escape(_trace_text(view, trace))}</button>'
        for t, trace in enumerate(view.traces)
    )
    text = "".join(
        f'<span style="background:{diverging(v)};color:{"#fff" if abs(v) > 0.72 else "inherit"}" '
        f'data-tip="{v:+.2f}">{escape(token).replace(LINE_END, SHOWN_LINE_END)}</span>'
        for token, v in zip(view.tokens, view.traces[0].values, strict=True)
    )
    width = column_width("".join(view.tokens))
    return (
        f'<div class="tabs traces" data-cells="{k}">{buttons}</div>'
        f'<div class="celltext" style="column-width:{width}ch">{text}</div>'
    )


LINE_END, SHOWN_LINE_END = "\n", "⏎\n"


def _trace_text(view: CellView, trace: CellTrace) -> str:
    kind = "cell" if view.tap == "cell" else "unit"
    return f"{trace.feature} · layer {trace.layer + 1}, {kind} {trace.unit} · r = {trace.score:+.2f}"
