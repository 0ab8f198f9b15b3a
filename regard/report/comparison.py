"""One self-contained page from one comparison: no network, nothing but what compare.json holds.

`render_report` is a pure function, so that a page can be drawn again from the file, later or by a newer version.
Everything that comes from data, models or the user is escaped before it goes into the page.
"""

from __future__ import annotations

from pathlib import Path

from regard.comparison.result import Comparison
from regard.files import write_atomically
from regard.report.curves import context_chart, learning_curves
from regard.report.inside import attention_figure, cells_figure
from regard.report.method import method, samples
from regard.report.ranking import ranking_figure
from regard.report.shell import report_page, section
from regard.report.surprise import surprise_figure


def write_report(folder: Path) -> Path:
    """Draw `report.html` from the `compare.json` in a comparison's folder."""
    path = folder / "report.html"
    write_atomically(path, render_report(Comparison.load(folder)).encode("utf-8"))
    return path


def render_report(comparison: Comparison) -> str:
    """The whole page as text."""
    surprise, surprise_data = surprise_figure(comparison)
    attention, attention_data = attention_figure(comparison)
    cells, cells_data = cells_figure(comparison)
    context = context_chart(comparison)
    sections = [
        section("Ranking", RANKING, ranking_figure(comparison), "ranking"),
        section("Learning", LEARNING, learning_curves(comparison), "curves"),
        section("Who uses long context?", CONTEXT, context, "context"),
        section("Surprise, token by token", SURPRISE, surprise, "surprise-section"),
        section("In their own words", SAMPLES, samples(comparison), "samples"),
        section("Where attention looks", ATTENTION, attention, "attention"),
        section("A cell that means something", CELLS, cells, "cells"),
        section("How it was measured", "", method(comparison), "method"),
    ]
    data = {"surprise": surprise_data, "attention": attention_data, "cells": cells_data}
    first, *rest = comparison.headline
    setup = comparison.setup
    seeds = f"{len(setup.seeds)} seed{'s' * (len(setup.seeds) != 1)}"
    return report_page(
        title=f"Regard: {', '.join(c.name for c in comparison.contenders)}",
        kicker=f"Regard · {len(comparison.contenders)} language models, one budget: {setup.budget} each, {seeds}",
        headline=first,
        lede=" ".join(rest),
        sections=sections,
        made="Made by Regard from compare.json.",
        data=data,
    )


RANKING = (
    "Bits per byte on text none of them has seen; lower is better. Bars are 95% intervals. They may overlap where the "
    "order is sure: hard text is hard for all, and the test between neighbours compares them on the same blocks."
)
LEARNING = "What each learned from what it was given. Point at a name or a line to see it alone."
CONTEXT = (
    "Fresh stretches of the test text, from their first byte on. A model that remembers keeps getting better as it has "
    "seen more; a line that goes flat has reached the end of its memory."
)
SURPRISE = (
    "A passage no model was trained on. Under the text, a strip for each model, best on top, five at most: the "
    "stronger its colour, the less it expected that token. Choose whose surprise colours the text; point at a word for "
    "all numbers."
)
SAMPLES = "The same prompt, continued by every model, best first."
ATTENTION = (
    "Each row is a token that looks back, each column a token it looks at; a stronger colour is more weight. From what "
    "it gathers there it predicts the next token. Choose a head; point at a row."
)
CELLS = (
    "The value of one unit, out of all, at every token: blue is negative, orange positive. These were picked because "
    "they track a feature of the text; r is the correlation on text beyond this passage."
)
