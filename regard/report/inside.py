"""Looking inside: attention maps, and texts coloured by one cell."""

from __future__ import annotations

from html import escape

from regard.comparison.result import Comparison
from regard.lens.views import AttentionView, CellTrace, CellView
from regard.report.order import best_first
from regard.report.palette import colour_of, diverging
from regard.report.surprise import column_width


def attention_figure(comparison: Comparison) -> tuple[str, list[dict[str, object]]]:
    """A frame for every contender that attends, best first; the page's script draws the maps from the weights."""
    shown = [(i, c, c.attention) for i, c in best_first(comparison) if c.attention is not None]
    figures: list[str] = []
    data: list[dict[str, object]] = []
    for k, (i, _, view) in enumerate(shown):
        layer, head = most_focused(view)
        data.append({"tokens": view.tokens, "weights": view.weights, "colour": colour_of(i), "start": [layer, head]})
        figures.append(
            f'<div class="panel" id="attention-{k}"{"" if k == 0 else " hidden"}>'
            f'<div class="attention" data-attention="{k}"><div class="map"></div>'
            f'<div class="side"><p class="which"></p><p class="reads"></p><div class="heads"></div></div></div></div>'
        )
    tabs = [_tab(f"attention-{k}", c.name, k == 0, colour_of(i)) for k, (i, c, _) in enumerate(shown)]
    return _tabbed(tabs, figures), data


def most_focused(view: AttentionView) -> tuple[int, int]:
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


def cells_figure(comparison: Comparison) -> tuple[str, list[dict[str, object]]]:
    """The passage coloured by one cell, with a button for every cell that was found to track something."""
    shown = [(i, c, c.cells) for i, c in best_first(comparison) if c.cells is not None and c.cells.traces]
    figures: list[str] = []
    data: list[dict[str, object]] = []
    appeal = [(view.tap == "cell", abs(view.traces[0].score)) for _, _, view in shown]
    first = appeal.index(max(appeal)) if appeal else 0
    for k, (_, _, view) in enumerate(shown):
        buttons = "".join(
            f'<button data-trace="{t}"{" class=on" if t == 0 else ""}>{escape(_trace_text(view, trace))}</button>'
            for t, trace in enumerate(view.traces)
        )
        text = "".join(
            f'<span style="background:{diverging(v)};color:{"#fff" if abs(v) > 0.72 else "inherit"}" '
            f'data-tip="{v:+.2f}">{escape(_shown(token))}</span>'
            for token, v in zip(view.tokens, view.traces[0].values, strict=True)
        )
        figures.append(
            f'<div class="panel" id="cells-{k}"{"" if k == first else " hidden"}>'
            f'<div class="tabs traces" data-cells="{k}">{buttons}</div>'
            f'<div class="celltext" style="column-width:{column_width("".join(view.tokens))}ch">{text}</div></div>'
        )
        data.append({"values": [t.values for t in view.traces]})
    tabs = [_tab(f"cells-{k}", c.name, k == first, colour_of(i)) for k, (i, c, _) in enumerate(shown)]
    return _tabbed(tabs, figures), data


def _trace_text(view: CellView, trace: CellTrace) -> str:
    kind = "cell" if view.tap == "cell" else "unit"
    return f"{trace.feature} · layer {trace.layer + 1}, {kind} {trace.unit} · r = {trace.score:+.2f}"


def _shown(token: str) -> str:
    return token.replace("\n", "⏎\n")


def _tab(target: str, name: str, is_on: bool, colour: str) -> str:
    return f'<button data-tab="{target}"{" class=on" if is_on else ""} style="--c:{colour}">{escape(name)}</button>'


def _tabbed(tabs: list[str], figures: list[str]) -> str:
    bar = f'<div class="tabs chips">{"".join(tabs)}</div>' if len(tabs) > 1 else ""
    return bar + "".join(figures)
