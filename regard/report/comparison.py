"""One self-contained page from one comparison: no network, nothing but what compare.json holds.

`render_comparison` is a pure function, so that a page can be drawn again from the file, later or by a newer version.
Everything that comes from data, models or the user is escaped before it goes into the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from regard.compare.headline import find_disagreement, write_difference
from regard.compare.result import Comparison, Contender, Example
from regard.errors import RegardError
from regard.files import write_atomically
from regard.lens.views import Continuation
from regard.report.attention_figure import attention_figure
from regard.report.cells_figure import cells_figure
from regard.report.comparison_picture import write_overview
from regard.report.curves import context_chart, learning_curves, length_chart
from regard.report.look import modules_of, styles_of
from regard.report.page_folder import Listing, is_our_page, read_listing
from regard.report.palette import Look, looks_of
from regard.report.ranking import ranking_figure
from regard.report.shell import facts, fold, how_to_repeat, report_page, section, setting_text, table, text_of
from regard.report.surprise import surprise_figure
from regard.score.figures import cost_text, count_text, duration_text, p_text

PAGE, PICTURE = "report.html", "overview.png"
DRAWN = (PAGE, PICTURE)
KIND = "a comparison"
"""What its last line says that the page is of."""


def check_drawn(folder: Path, way_out: str) -> None:
    """Refuse a page that Regard did not draw or that is another one, and a picture that the page does not list.

    Pages of earlier versions list nothing, and the picture beside one is taken to be drawn with it. The error ends with
    `way_out`.
    """
    is_ours, listing = is_our_page(folder / PAGE), read_listing(folder / PAGE)
    is_drawn = {
        PAGE: is_ours and listing.kind in (None, KIND),
        PICTURE: is_ours and (listing.kind is None or PICTURE in listing.files),
    }
    for name in DRAWN:
        if (folder / name).exists() and not is_drawn[name]:
            raise RegardError(
                f"'{folder}' holds {name}, which Regard did not draw there for a comparison. Move it, or {way_out}."
            )


def draw_comparison(comparison: Comparison, folder: Path, note: Callable[[str], None] | None = None) -> Path:
    """Draw report.html, whose path is returned, and overview.png.

    A picture that cannot be drawn (matplotlib missing, say) is told through `note`, and takes nothing else down.
    """
    path = folder / PAGE
    write_atomically(path, render_comparison(comparison) + Listing(KIND, frozenset({PICTURE})).line())
    try:
        write_atomically(folder / PICTURE, lambda aside: write_overview(comparison, aside))
    except ImportError as error:
        if note is not None:
            note(f"No overview.png: {error}. Install matplotlib, then: regard report {folder}")
    return path


def render_comparison(comparison: Comparison) -> str:
    """The whole page as text."""
    looks, setup = looks_of(c.name for c in comparison.contenders), comparison.setup
    surprise, surprise_data = surprise_figure(comparison, looks)
    attention, panels = attention_figure(comparison, looks)
    cells, cell_panels = cells_figure(comparison, looks, len(panels))
    views = [name for name, found in (("attention", panels), ("cells", cell_panels)) if found]
    first, *rest = comparison.headline
    measure, watched = setup.measure, setup.watched_measure
    learning = f"{watched.name[:1].upper() + watched.name[1:]} on the validation data, {watched.direction}. {LEARNING}"
    return report_page(
        title=f"Regard: {', '.join(c.name for c in comparison.contenders)}",
        kicker=_kicker(comparison),
        headline=first,
        lede=" ".join(rest),
        notes=[note for note in (*comparison.warnings, find_disagreement(comparison)) if note],
        sections=[
            section("Ranking", f"{measure.name[:1].upper() + measure.name[1:]} on the test data; {measure.direction}. "
                    f"{RANKING}", ranking_figure(comparison, looks) + _failure_list(comparison), "ranking"),
            section("Better, or lucky with the test data?", f"{PAIRS} {comparison.power}", _pairs(comparison), "pairs"),
            section("Learning", learning, learning_curves(comparison, looks), "curves"),
            section("What a score costs", COSTS, _costs(comparison), "costs"),
            section("Who holds up on long sentences?", LENGTHS, length_chart(comparison, looks), "lengths"),
            section("Who uses long context?", CONTEXT, context_chart(comparison, looks), "context"),
            section("Surprise, token by token", SURPRISE, surprise, "surprise-section"),
            section("In their own words", SAMPLES, _samples(comparison, looks), "samples"),
            section("Side by side", EXAMPLES.format(items=setup.items), _examples(comparison, looks), "examples"),
            section("Where attention looks", ATTENTION, attention, "attention"),
            section("A cell that means something", CELLS, cells, "cells"),
            section("How it was measured", "", _method(comparison, looks), "method"),
        ],
        made="Made by Regard from compare.json; all answers are in the folder outputs beside it.",
        own_css=text_of("comparison.css") + (styles_of(views) if views else ""),
        own_js=text_of("inside.js"),
        modules=modules_of(views) if views else "",
        data={"surprise": surprise_data, "panels": [*panels, *cell_panels]},
    )  # fmt: skip


def _kicker(comparison: Comparison) -> str:
    setup, n = comparison.setup, len(comparison.contenders)
    if (training := setup.training) is None:
        n_runs = sum(len(c.runs) for c in comparison.contenders)
        return f"Regard · {setup.task}: {n_runs} finished runs, {setup.n_tested:,} test {setup.items}"
    seeds = f"{len(training.seeds)} seed{'s' * (len(training.seeds) != 1)}"
    return f"Regard · {setup.task}: {n} models, one budget: {training.budget} each, {seeds}"


def _pairs(comparison: Comparison) -> str:
    """By how much each contender is ahead of each below it, and every test in full."""
    pairs, measure = comparison.pairs, comparison.setup.measure
    if len(pairs) < 2:
        return ""
    rows = [
        (
            f"{pair.better} over {pair.worse}", measure.value(pair.difference), f"{pair.relative:.1%}",
            f"{measure.value(pair.low)} to {measure.value(pair.high)}",
            *(p_text(p).removeprefix("p = ").removeprefix("p ") for p in (pair.p, pair.p_holm)),
            "settled" if pair.is_settled else "no" if pair.why.startswith("p ") else f"no: {pair.why}",
        )
        for pair in pairs
    ]  # fmt: skip
    open_rows = [i for i, pair in enumerate(pairs) if not pair.is_settled]
    heads = ("", f"ahead by, {measure.short_name}", "relative", "95% interval", "p", "p, corrected", "settled")
    every = table(heads, rows, open_rows)
    matrices = "".join(_matrix(comparison, group) for group in comparison.groups if len(group) > 1)
    return matrices + fold(f"All {len(pairs)} pairs with intervals and p", every)


def _matrix(comparison: Comparison, group: Sequence[Contender]) -> str:
    """The difference of every two of a group, with ? where it is not settled."""
    rows = []
    for place, better in enumerate(group[:-1]):
        found = [comparison.pair(better.name, worse.name) for worse in group[place + 1 :]]
        cells = [write_difference(pair, comparison.setup.measure) for pair in found]
        rows.append((better.name, *[""] * place, *cells))
    return table(("ahead of →", *(c.name for c in group[1:])), rows)


def _costs(comparison: Comparison) -> str:
    levels = [comparison.setup.watched_measure.level(row.level) for row in comparison.costs]
    order = [c.name for c in comparison.contenders]
    rows = []
    for name in comparison.ranking:
        i = order.index(name)
        rows.append((name, *(cost_text(row.flops[i], row.seconds[i], " · ") for row in comparison.costs)))
    return table(("validation score", *levels), rows) if levels else ""


def _failure_list(comparison: Comparison) -> str:
    lines = [
        f"<li><b>{escape(c.name)}</b>{'' if c.score is None else f', seed {f.seed}'}: {escape(f.reason)}</li>"
        for c in comparison.contenders
        for f in (c.failures[:1] if c.score is None else c.failures)
    ]
    return f'<div class="failed"><h3>Did not finish</h3><ul>{"".join(lines)}</ul></div>' if lines else ""


def _samples(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """One card a contender, best first, the prompt set apart from what the model wrote; without blank lines."""
    prompt = f'<span class="prompt">{escape(comparison.setup.prompt)}</span>'
    cards = []
    for c in comparison.ranked:
        if c.views.sample:
            sample = escape(re.sub(r"\n\s*\n", "\n", c.views.sample))
            cards.append(
                f'<article class="card" style="--c:{looks[c.name].colour}"><h3>{escape(c.name)}</h3>'
                f'<p class="sample">{prompt}{sample}</p>{_next_words(c.views.next_words)}</article>'
            )
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


def _next_words(found: Sequence[Continuation]) -> str:
    """The words that are most probable after the prompt as bars, each as long as its probability."""
    bars = [
        f'<li><span>{escape(c.word.replace(chr(10), "⏎"))}</span><i style="width:{100 * c.probability:.1f}%"></i>'
        f"<b>{c.probability:.1%}</b></li>"
        for c in found
    ]
    return f'<ol class="nextwords" aria-label="Next after the prompt">{"".join(bars)}</ol>' if bars else ""


def _examples(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    if not comparison.examples:
        return ""
    kind = "trees" if comparison.examples[0].source and _is_tree(comparison.examples[0].references[0]) else ""
    return f'<div class="{kind}">{"".join(_example(comparison, e, looks) for e in comparison.examples)}</div>'


def _is_tree(text: str) -> bool:
    return text.startswith("(") and text.endswith(")")


def _example(comparison: Comparison, example: Example, looks: Mapping[str, Look]) -> str:
    rows = []
    if example.picture is None:
        rows.append(f'<span>source {example.number:,}</span><p class="source">{escape(example.source)}</p>')
    else:
        shown = f'<img class="photo" src="{escape(example.picture, quote=True)}" alt="">'
        rows.append(f"<span>{escape(example.source)}</span>{shown}")
    for reference in example.references:
        rows.append(f'<span>reference</span><p class="reference">{escape(reference)}</p>')
    outputs = {c.name: output for c, output in zip(comparison.contenders, example.outputs, strict=True)}
    for c in comparison.ranked:
        output = outputs[c.name]
        body = escape(output) if _is_tree(example.references[0]) else mark_misses(output, example.references)
        rows.append(f'<b style="color:{looks[c.name].colour}">{escape(c.name)}</b><p>{body or "(nothing)"}</p>')
    return f'<div class="example">{"".join(rows)}</div>'


def mark_misses(output: str, references: Sequence[str]) -> str:
    """Escaped, with the words marked that no reference has, in any case.

    >>> mark_misses("ein Hund & Katze", ["Ein Hund"])
    'ein Hund &amp; <span class="miss">Katze</span>'
    """
    known = {word.lower() for reference in references for word in re.findall(r"\w+", reference)}
    parts = re.split(r"(\w+)", output)  # what lies between words stands at the even places
    return "".join(
        f'<span class="miss">{escape(part)}</span>' if i % 2 and part.lower() not in known else escape(part)
        for i, part in enumerate(parts)
    )


def _method(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Enough to judge the comparison, and to repeat it."""
    s = comparison.setup
    rows = [*_describe_training(comparison)]
    rows.append(("Test data", f"{s.data}; {s.n_tested:,} {s.items}; fingerprint {s.data_hash[:16]}"))
    optional = (("Decoding", s.decoding), ("Samples", s.sampling), (s.metric.capitalize(), s.signature),
                *s.other_signatures.items(), ("Interval", s.interval), ("p", s.test))  # fmt: skip
    rows += [(name, text) for name, text in optional if text]
    if s.n_left_out:
        rows.append(("Left out", f"{s.n_left_out:,} test items are longer than one of the models reads"))
    rows += [("Note", note) for note in s.notes]
    trained = "" if s.training is not None else " (where this was tested, not trained)"
    total = "" if s.training is None else f", {duration_text(s.training.seconds)} in all"
    rows += [
        ("FLOPs, time", FLOPS),
        ("Machine", f"{s.hardware}{trained}"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in s.versions.items())),
        ("When", f"{s.date}{total}"),
    ]
    settings = "".join(_settings(c, looks[c.name], comparison) for c in comparison.contenders)
    return facts(rows) + how_to_repeat(s.command) + fold("Every contender's settings", settings)


def _describe_training(comparison: Comparison) -> list[tuple[str, str]]:
    training = comparison.setup.training
    if training is None:
        return []
    notes = [f"* {c.name}: {c.size_note}." for c in comparison.contenders if c.size_note]
    size = "as configured"
    if training.n_parameters is not None:
        kind = "non-embedding parameters" if training.match == "non-embedding" else "parameters"
        size = f"{count_text(training.n_parameters)} {kind} within 2%: widths are solved for"
    return [
        ("Training data", training.data),
        ("Budget", f"{training.budget}, for each contender and seed"),
        ("Size", f"{size}. {' '.join(notes)}"),
        ("Order", training.batch),
        ("Tuning", "one trial each, with the default learning rate and schedule unless the settings below differ"),
        ("Seeds", ", ".join(map(str, training.seeds))),
    ]


def _settings(contender: Contender, look: Look, comparison: Comparison) -> str:
    measure = comparison.setup.measure
    runs = ", ".join(f"{run.run} ({measure.value(run.score)})" for run in contender.runs)
    lines = (
        (name, ", ".join(f"{k} {setting_text(v)}" for k, v in values.items()))
        for name, values in contender.config.items()
        if contender.has_seeds or name not in ("optimizer", "schedule")  # counting has none
    )
    title = f"{escape(contender.name)} <small>{escape(runs)}</small>"
    return f'<h3 style="color:{look.colour}">{title}</h3>{facts(lines)}'


RANKING = (
    "Bars are 95% intervals. They may overlap where the order is sure: what is hard is hard for all, and two "
    "contenders are compared on the same test items."
)
PAIRS = (
    "By how much the model of a row is ahead of that of a column, on the same test items; ? where it is not settled."
)
LEARNING = "Point at a name or a line to see it alone."
COSTS = "Training FLOPs and training time at the first evaluation whose validation score was as good; – means never."
LENGTHS = (
    "The score of the test items whose sources have so many words, punctuation included where it stands apart; bands "
    "and brackets are 95% intervals over test items and seeds. A model that squeezes the source through one vector "
    "loses most where there is most to keep."
)
CONTEXT = (
    "Fresh stretches of the test text, from their first byte on; bands are 95% intervals over documents and seeds. A "
    "model that remembers keeps getting better as it has seen more; a line that goes flat has reached the end of its "
    "memory."
)
SURPRISE = (
    "A passage no model was trained on. Under the text, a strip for each model, best on top, five at most: the "
    "stronger its colour, the less it expected that token. Choose whose surprise colours the text; point at a word for "
    "all numbers."
)
SAMPLES = (
    "The same prompt, continued by every model, best first; below, the words that each holds most probable after it."
)
EXAMPLES = (
    "Some test {items}, evenly over the test data: those that not all answer alike, where there are any. Words that no "
    "reference has are marked, but in trees."
)
ATTENTION = (
    "Each row is a token that looks back, each column a token it looks at; a stronger colour is more weight. From what "
    "it gathers there it predicts the next token. Heads are named by what their weights do on this passage: choose "
    "one, then point at a word."
)
CELLS = (
    "The value of one unit, out of all, at every token: blue is negative, orange positive; the line under the passage "
    "is the feature that it follows. A unit was chosen on one half of the test text; r is its correlation on the other."
)
FLOPS = (
    "of training alone: 2 × multiply-adds of the matrix products, three times the forward pass; counting has none. "
    "Time is that of the machine each was trained on, without evaluation and saving"
)
