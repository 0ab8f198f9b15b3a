"""One self-contained page from one comparison: no network, nothing but what compare.json holds.

`render_report` is a pure function, so that a page can be drawn again from the file, later or by a newer version.
Everything that comes from data, models or the user is escaped before it goes into the page.
"""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from pathlib import Path

from regard.comparison.result import Comparison
from regard.files import write_atomically
from regard.lens.page.curves import context_chart, learning_curves
from regard.lens.page.inside import attention_figure, cells_figure
from regard.lens.page.method import method, samples
from regard.lens.page.ranking import ranking_figure
from regard.lens.page.surprise import surprise_figure


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
        _section("ranking", "Ranking", RANKING, ranking_figure(comparison)),
        _section("curves", "Learning", LEARNING, learning_curves(comparison)),
        _section("context", "Who uses long context?", CONTEXT, context),
        _section("surprise-section", "Surprise, token by token", SURPRISE, surprise),
        _section(
            "samples",
            "In their own words",
            "The same prompt, continued by every model, best first.",
            samples(comparison),
        ),
        _section("attention", "Where attention looks", ATTENTION, attention),
        _section("cells", "A cell that means something", CELLS, cells),
        _section("method", "How it was measured", "", method(comparison)),
    ]
    data = {"surprise": surprise_data, "attention": attention_data, "cells": cells_data}
    first, *rest = comparison.headline
    setup = comparison.setup
    return PAGE.format(
        title=escape(f"Regard: {', '.join(c.name for c in comparison.contenders)}"),
        css=_text("report.css"),
        headline=escape(first),
        rest=escape(" ".join(rest)),
        budget=escape(setup.budget),
        n=len(comparison.contenders),
        seeds=f"{len(setup.seeds)} seed{'s' * (len(setup.seeds) != 1)}",
        sections="\n".join(s for s in sections if s),
        data=_script_json(data),
        js=_text("report.js"),
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
ATTENTION = (
    "Each row is a token that looks back, each column a token it looks at; a stronger colour is more weight. From what "
    "it gathers there it predicts the next token. Choose a head; point at a row."
)
CELLS = (
    "The value of one unit, out of all, at every token: blue is negative, orange positive. These were picked because "
    "they track a feature of the text; r is the correlation on text beyond this passage."
)

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}
</style>
</head>
<body>
<main>
<header>
<p class="kicker">Regard · {n} language models, one budget: {budget} each, {seeds}</p>
<h1>{headline}</h1>
<p class="lede">{rest}</p>
</header>
{sections}
<footer>Made by Regard from compare.json. This page is one file and loads nothing from the network.</footer>
</main>
<div id="tip" hidden></div>
<script type="application/json" id="data">{data}</script>
<script>
{js}
</script>
</body>
</html>
"""


def _section(name: str, title: str, lede: str, body: str) -> str:
    if not body:
        return ""
    note = f'<p class="note">{escape(lede)}</p>' if lede else ""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{note}{body}</section>'


def _script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def _text(name: str) -> str:
    return resources.files("regard.lens").joinpath(name).read_text(encoding="utf-8")
