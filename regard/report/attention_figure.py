"""Attention in a comparison's report: the maps that were saved with it, drawn by the same script as `regard look`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.compare.result import Comparison
from regard.lens.attention_view import MAX_BYTES, Stack, describe_stack
from regard.lens.subject import Side, Span
from regard.lens.view import LookOptions, View, to_plain
from regard.lens.views import AttentionView
from regard.report.look import place_view
from regard.report.palette import Look
from regard.report.shell import Tab, tabs


def attention_figure(comparison: Comparison, looks: Mapping[str, Look]) -> tuple[str, list[dict[str, Any]]]:
    """A panel for every contender that attends, best first, and the data that the script of the view draws from."""
    panels: list[Tab] = []
    data: list[dict[str, Any]] = []
    for contender in comparison.ranked:
        saved, colour = contender.views.attention, looks[contender.name].colour
        if saved is None:
            continue
        view, page = describe_saved(saved, comparison.setup.passage)
        data.append(page | {"name": contender.name, "colour": colour, "views": {view.name: view.to_json()}})
        number = len(panels)
        panels.append(Tab(f"attention-{number}", contender.name, place_view(view, number), colour))
    return tabs(panels), data


def describe_saved(saved: AttentionView, passage: str) -> tuple[View, dict[str, Any]]:
    """The view of weights that were saved, and the tokens of its page with their places in the passage."""
    T = len(saved.tokens)
    spans = find_spans(saved.tokens, passage)
    side = Side.of(passage, saved.tokens, spans)
    layers = [
        np.array([[(*row, *(0.0,) * (T - len(row))) for row in head] for head in heads]) for heads in saved.weights
    ]
    is_own = tuple(span is not None for span in spans)
    stack, said, rows = describe_stack(Stack("", layers, side, side, is_own, True), LookOptions(), MAX_BYTES)
    table = ("who", "what", "share"), rows
    view = View(name="attention", title="", note="", summary=said, data={"stacks": [stack]}, table=table)
    return view, to_plain({"text": passage, "spans": spans, **side.to_json()})


def find_spans(tokens: Sequence[str], passage: str) -> list[Span | None]:
    """The characters of each token in the passage that they were read from; None for one that is not found there.

    >>> find_spans(["<eos>", "In", " Oct", "ober", ","], "In October, people")
    [None, (0, 2), (2, 6), (6, 10), (10, 11)]
    """
    spans: list[Span | None] = []
    at = 0
    for token in tokens:
        shown = token.strip() or token
        found = passage.find(shown, at)
        is_near = found >= 0 and not passage[at:found].strip()
        spans.append((at, found + len(shown)) if is_near else None)
        at = found + len(shown) if is_near else at
    return spans
