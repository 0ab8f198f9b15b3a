"""Cells as a view: the text coloured by one unit, a button for every feature that some unit follows."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from regard.errors import RegardError
from regard.lens.cells import MAX_CHARS, MIN_TOKENS, find_cells, show_cells
from regard.lens.subject import Subject
from regard.lens.units import has_units
from regard.lens.view import LookOptions, View
from regard.lens.views import CellTrace, CellView

LONG = 20_000
"""A text of so many characters is searched itself; for a shorter one, the run's held-out text is."""

LARGE = 20_000_000
"""Parameters of a model from which on less is searched."""

_FOUND: WeakKeyDictionary[Any, tuple[str, CellView | None]] = WeakKeyDictionary()
"""The text that a model was last searched on, and what was found: it takes seconds, and every text of the user's asks
for it again. One text a model: they are long."""


def view_cells(subject: Subject, options: LookOptions) -> View | None:
    """The units that follow something, on passages that show it and on the user's text; None where there are none.

    `options.search_text` is the long text that is searched; without it, the user's own text where that is long, or the
    run's held-out text.
    """
    model, tokenizer = subject.run.model, subject.run.tokenizers[0]
    if not has_units(model):
        return None
    text, source = choose_search_text(subject, options)
    kept = _FOUND.get(model)
    if kept is None or kept[0] != text:
        kept = text, find_cells(model, tokenizer, text)
        _FOUND[model] = kept  # another thread may put its own there at once
    found = kept[1]
    return None if found is None else describe_cells(show_cells(found, model, tokenizer, subject.text), source)


def explain_no_cells(subject: Subject, options: LookOptions) -> str:
    """Why there is no view of cells."""
    if not has_units(subject.run.model):
        return "it has no units that read a text"
    if options.search_text is None:
        try:
            subject.run.held_out_text(1)
        except RegardError as error:
            return f"there is no text to search, give --search FILE: {str(error).rstrip('.')}"
    return f"the text to search has under {MIN_TOKENS} tokens, or no feature varies on it: give --search FILE"


def choose_search_text(subject: Subject, options: LookOptions) -> tuple[str, str]:
    """The text whose features units are held against, and what it is called."""
    if options.search_text is not None:
        return options.search_text, "the text that was given"
    if len(subject.text) >= LONG:
        return subject.text, "this text"
    try:
        text = subject.run.held_out_text(choose_size(subject.run.facts.n_parameters))
    except RegardError:
        text = ""
    is_longer = len(text) > len(subject.text)
    return (text, "text that it was not trained on") if is_longer else (subject.text, "this text alone")


def choose_size(n_parameters: int) -> int:
    """How many characters are searched: all that may be by small models, fewer by large ones, which take minutes."""
    return MAX_CHARS if n_parameters <= LARGE else MAX_CHARS // 2 if n_parameters <= 5 * LARGE else MAX_CHARS // 10


def describe_cells(found: CellView, source: str = "the test text") -> View:
    """The view of what a search found; of a comparison's file, too."""
    kind = "cell" if found.tap == "cell" else "unit"
    traces = [*found.traces, *([] if found.nothing is None else [found.nothing])]
    best = found.traces[0]
    said = (
        f"{name_unit(best, kind)} follows “{best.feature}” best (r = {best.score:+.2f} on text that did not choose it)"
    )
    if found.n_units:
        share = 1 - found.n_explained / found.n_units
        said += (
            f"; of {found.n_units:,} {kind}s, {share:.0%} follow no feature (|r| below {found.threshold:g} on the "
            f"held-out half of {found.n_chars:,} characters)"
        )
    left_out = f" These features do not vary on it: {', '.join(found.left_out)}." if found.left_out else ""
    return View(
        name="cells",
        title=f"A {kind} that means something",
        note=f"Orange where the {kind} is positive, blue where it is negative; the line under the passage is the "
        f"feature itself. Each {kind} was chosen on one half of {source} and checked on the other.{left_out}",
        summary=said[0].upper() + said[1:] + ".",
        data={"kind": kind, "cells": [_plain(trace, found, kind) for trace in traces]},
        table=(
            ("where", kind, "follows", "r, held out"),
            [(name_place(unit.tap), str(unit.unit), unit.feature, f"{unit.score:+.3f}") for unit in found.ranked]
            or [
                (name_place(t.tap) or f"layer {t.layer + 1}", str(t.unit), t.feature, f"{t.score:+.3f}") for t in traces
            ],
        ),
    )


def name_unit(trace: CellTrace, kind: str) -> str:
    """A unit as it is called in a sentence."""
    return f"{kind} {trace.unit} of {name_place(trace.tap) or f'layer {trace.layer + 1}'}"


def name_place(tap: str) -> str:
    """The layer that a tap is of, from 1 on, and the part of the model around it; nothing for an empty name.

    >>> name_place("layers.1.cell"), name_place("encoder.layers.0.back.cell")
    ('layer 2', 'layer 1 (encoder, back)')
    """
    match = re.fullmatch(r"(.*?)\.?layers\.(\d+)\.(.*?)\.?(?:cell|hidden)", tap)
    if match is None:
        return tap
    parts = ", ".join(part for part in (match[1], match[3]) if part)
    return f"layer {int(match[2]) + 1}" + (f" ({parts})" if parts else "")


def _plain(trace: CellTrace, found: CellView, kind: str) -> dict[str, Any]:
    """What the page's script draws of one unit."""
    return {
        "feature": trace.feature or "follows nothing",
        "unit": name_unit(trace, kind),
        "r": None if not trace.feature else round(trace.score, 3),
        "found": None if not trace.score_found else round(trace.score_found, 3),
        "tokens": list(trace.tokens or found.tokens),
        "values": list(trace.values),
        "follows": list(trace.feature_values),
        "ownTokens": list(trace.own_tokens),
        "own": list(trace.own_values),
    }
