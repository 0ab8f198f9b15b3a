"""The table of views, and how they are made of one subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.errors import RegardError, nearest
from regard.lens.alignment_view import explain_no_alignment, view_alignment
from regard.lens.attention_view import view_attention
from regard.lens.by_hand import view_steps
from regard.lens.cell_view import explain_no_cells, view_cells
from regard.lens.context_view import view_vectors
from regard.lens.gradient_view import explain_no_gradients, view_gradients
from regard.lens.influence_view import explain_no_influence, view_faithfulness, view_influence
from regard.lens.layers_view import explain_no_layers, view_layers
from regard.lens.next_word import explain_no_next, view_next
from regard.lens.over_time import view_over_time
from regard.lens.picture_view import view_picture
from regard.lens.positions import view_positions
from regard.lens.subject import Subject
from regard.lens.surprise import view_surprise
from regard.lens.view import LookOptions, Packed, View


class ViewEntry(NamedTuple):
    """A view of the table; `make` gives None where the model has nothing of its kind, and `without` says so."""

    make: Callable[[Subject, LookOptions], View | None]
    summary: str
    without: str | Callable[[Subject, LookOptions], str]
    is_default: bool = True
    """Whether it is shown where no view is asked for by name."""
    is_slow: bool = False
    """Whether it takes seconds: the local page computes it when it is asked for, beside all others."""


VIEWS: dict[str, ViewEntry] = {
    "next": ViewEntry(view_next, "what comes after the text", explain_no_next),
    "surprise": ViewEntry(view_surprise, "what each token cost, and what was expected", "it predicts no tokens"),
    "layers": ViewEntry(view_layers, "what it would say if it stopped at each layer", explain_no_layers, is_slow=True),
    "attention": ViewEntry(
        view_attention, "where each head of each layer looks", "its tokens do not attend to one another"
    ),
    "alignment": ViewEntry(
        view_alignment, "a translation: which words of the source each word comes from", explain_no_alignment
    ),
    "picture": ViewEntry(view_picture, "a caption: where in the picture each word looked", "it looks at no picture"),
    "steps": ViewEntry(
        view_steps, "one row of attention in numbers: --layer, --head, --word", "it keeps no queries", False
    ),
    "influence": ViewEntry(
        view_influence,
        "which words a prediction comes from: what is next, or --word",
        explain_no_influence,
        is_slow=True,
    ),
    "faithfulness": ViewEntry(
        view_faithfulness,
        "whether attention explains a prediction",
        "it does not attend, or makes no choice",
        is_default=False,
        is_slow=True,
    ),
    "cells": ViewEntry(
        view_cells,
        "the text coloured by units that follow a feature",
        explain_no_cells,
        is_slow=True,
    ),
    "vectors": ViewEntry(
        view_vectors, "one word in several texts: --word WORD --text ... --text ...", "no --word was given", False, True
    ),
    "gradients": ViewEntry(view_gradients, "how far back a prediction's gradient reaches", explain_no_gradients),
    "positions": ViewEntry(
        view_positions, "the vectors that tell where a token stands", "it has no table of positions"
    ),
    "over-time": ViewEntry(
        view_over_time, "how it learned, by the weights it kept: --over-time", "--over-time was not given", False, True
    ),
}
"""In the order in which a page shows them."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one model shows of one text."""

    name: str
    text: str
    """What the tokens are of: the user's text, or what was written for it."""
    tokens: tuple[str, ...]
    spans: tuple[tuple[int, int] | None, ...]
    words: tuple[int, ...]
    word_texts: tuple[str, ...]
    views: tuple[View, ...]
    source: str = ""
    """What the user gave."""
    model: str = ""
    """Whose colour it has; empty: its own name says that."""
    is_forced: bool = False
    """Whether a translator or a captioner was made to write the text."""
    missing: tuple[tuple[str, str], ...] = ()
    """Views that the model has nothing for, and why."""

    def to_json(self, pack: Callable[[Packed], Any] = Packed.to_json) -> dict[str, Any]:
        """Plain JSON values; arrays are what `pack` makes of them."""
        return {
            "name": self.name, "text": self.text, "source": self.source,
            "tokens": list(self.tokens), "words": list(self.words),
            "spans": [None if span is None else list(span) for span in self.spans],
            "wordTexts": list(self.word_texts), "views": {view.name: view.to_json(pack) for view in self.views},
            "missing": dict(self.missing),
        }  # fmt: skip


def check_views(names: Sequence[str] | None) -> list[str]:
    """The views that are asked for, in their order; where that is None, those that are always shown."""
    for name in names or ():
        if name not in VIEWS:
            raise RegardError(f"There is no view '{name}'.{nearest(name, VIEWS)} Views: {', '.join(VIEWS)}.")
    return [name for name, entry in VIEWS.items() if (entry.is_default if names is None else name in names)]


def look_at(
    subject: Subject,
    names: Sequence[str] | None = None,
    options: LookOptions | None = None,
    tell: Callable[[str, int, int | None], None] | None = None,
) -> Panel:
    """Make the views of a subject; those that it has nothing for are named with the reason."""
    options = options or LookOptions()
    views, missing = [], []
    asked = check_views(names)
    _ = subject.trace  # first: what it refuses would end a view in an error of its own
    for done, name in enumerate(asked):
        if tell is not None:
            tell(f"Looking into {subject.name}", done, len(asked))
        view = VIEWS[name].make(subject, options)
        if view is None:
            without = VIEWS[name].without
            missing.append((name, without if isinstance(without, str) else without(subject, options)))
        else:
            views.append(view)
    return Panel(
        name=subject.name, text=subject.written, source=subject.text, tokens=subject.tokens, spans=subject.spans,
        words=subject.words, word_texts=subject.word_texts, views=tuple(views), missing=tuple(missing),
        is_forced=subject.is_forced,
    )  # fmt: skip


def check_shown(panels: Sequence[Panel]) -> None:
    """Refuse a page on which nothing can be seen."""
    if not any(panel.views for panel in panels):
        why = "; ".join(f"{panel.name}, {name}: {reason}" for panel in panels for name, reason in panel.missing)
        raise RegardError(f"There is nothing to show ({why}). Leave out --view to see what there is.")
