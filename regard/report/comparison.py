"""One self-contained page from one comparison: no network, nothing but what compare.json holds.

`render_report` is a pure function, so that a page can be drawn again from the file, later or by a newer version.
Everything that comes from data, models or the user is escaped before it goes into the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from statistics import fmean

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison, ContenderResult, Neighbours
from regard.comparison.words import p_text, why_unsettled
from regard.files import write_atomically
from regard.report.curves import context_chart, learning_curves
from regard.report.inside import attention_figure, cells_figure
from regard.report.palette import Look, looks_of
from regard.report.ranking import Gap, Ranked, disagreement, ranking_figure
from regard.report.shell import facts, fold, how_to_repeat, report_page, section, setting_text, text_of
from regard.report.surprise import surprise_figure

COSTS = ("perplexity\nper token", "parameters", "training\ntokens", "FLOPs", "time")


def write_report(folder: Path) -> Path:
    """Draw `report.html` from the `compare.json` in a comparison's folder."""
    path = folder / "report.html"
    write_atomically(path, render_report(Comparison.load(folder)).encode("utf-8"))
    return path


def render_report(comparison: Comparison) -> str:
    """The whole page as text."""
    looks = looks_of(c.name for c in comparison.contenders)
    surprise, surprise_data = surprise_figure(comparison, looks)
    attention, attention_data = attention_figure(comparison, looks)
    cells, cells_data = cells_figure(comparison, looks)
    first, *rest = comparison.headline
    setup = comparison.setup
    seeds = f"{len(setup.seeds)} seed{'s' * (len(setup.seeds) != 1)}"
    return report_page(
        title=f"Regard: {', '.join(c.name for c in comparison.contenders)}",
        kicker=f"Regard · {len(comparison.contenders)} language models, one budget: {setup.budget} each, {seeds}",
        headline=first,
        lede=" ".join(rest),
        notes=[note for note in (_disagreement(comparison),) if note],
        sections=[
            section("Ranking", RANKING, _ranking(comparison, looks) + _failure_list(comparison), "ranking"),
            section("Learning", LEARNING, learning_curves(comparison, looks), "curves"),
            section("Who uses long context?", CONTEXT, context_chart(comparison, looks), "context"),
            section("Surprise, token by token", SURPRISE, surprise, "surprise-section"),
            section("In their own words", SAMPLES, _samples(comparison, looks), "samples"),
            section("Where attention looks", ATTENTION, attention, "attention"),
            section("A cell that means something", CELLS, cells, "cells"),
            section("How it was measured", "", _method(comparison, looks), "method"),
        ],
        made="Made by Regard from compare.json.",
        own_js=text_of("inside.js"),
        data={"surprise": surprise_data, "attention": attention_data, "cells": cells_data},
    )


def _disagreement(comparison: Comparison) -> str:
    rows = []
    for c in comparison.ranked:
        curves = [s.curve for s in c.seeds if s.curve]
        best = fmean(min(p.bits_per_byte for p in curve) for curve in curves) if curves else None
        assert c.score is not None
        rows.append((c.name, best, c.score.bits_per_byte))
    return disagreement(rows, is_lower_better=True, digits=3)


def _ranking(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    gaps = {n.better: _gap(n, comparison) for n in comparison.neighbours}
    rows = [_rank_row(c, looks[c.name], gaps.get(c.name)) for c in comparison.ranked]
    return ranking_figure(rows, "bits per byte", COSTS, digits=3, least_margin=0.05) if rows else ""


def _rank_row(contender: ContenderResult, look: Look, gap: Gap | None) -> Ranked:
    score = contender.score
    assert score is not None
    size = "" if contender.n_parameters is None else count_text(contender.n_parameters)
    costs = (
        ("perplexity", f"{score.perplexity_per_token:.4g}"),
        ("parameters", size + ("*" if contender.parameters_note else "")),
        ("tokens", count_text(score.train_tokens)),
        ("FLOPs", f"{score.flops:.2g}".replace("e+", "e") if score.flops else "none"),
        ("time", duration_text(score.seconds)),
    )
    return Ranked(
        name=contender.name, look=look, about=_about(contender), score=score.bits_per_byte, low=score.low,
        high=score.high, costs=costs, gap=gap,
        mark=None if contender.is_comparable else ("†", "lossy tokenizer: not comparable"),
    )  # fmt: skip


def _about(contender: ContenderResult) -> str:
    model = "" if contender.model == contender.name else f"{contender.model}, "
    width = next((f"{v} wide, " for k, v in contender.config.items() if k == "d_model"), "")
    layers = contender.config.get("n_layers")
    depth = "" if layers is None else f"{layers} layer{'s' * (layers != 1)}, "
    order = contender.config.get("order")
    tokenizer = contender.tokenizer
    tokens = "" if tokenizer is None else f"{tokenizer.kind} {tokenizer.vocab_size}"
    return model + (f"order {order}, " if order else "") + depth + width + tokens


def _gap(n: Neighbours, comparison: Comparison) -> Gap:
    note = "" if n.is_clear else " · not settled" + ("" if n.p >= 0.05 else f", {why_unsettled(n, comparison.ranked)}")
    tip = f"{n.better} over {n.worse}: {n.difference:.4f} bits per byte, 95% interval {n.low:.4f} to {n.high:.4f}"
    return Gap(f"{n.difference:.3f} ahead, {p_text(n.p)}{note}", tip, n.is_clear)


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
        if c.sample:
            sample = escape(re.sub(r"\n\s*\n", "\n", c.sample))
            cards.append(
                f'<article class="card" style="--c:{looks[c.name].colour}"><h3>{escape(c.name)}</h3>'
                f'<p class="sample">{prompt}{sample}</p></article>'
            )
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


def _method(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """Enough to judge the comparison, and to repeat it."""
    s = comparison.setup
    source = s.data.get("train")
    name = ", ".join(source) if isinstance(source, list | tuple) else str(source)
    notes = [f"* {c.name}: {c.parameters_note}." for c in comparison.contenders if c.parameters_note]
    notes += [f"† {c.name}: its tokenizer loses text." for c in comparison.ranked if not c.is_comparable]
    size = f"{count_text(s.n_parameters)} parameters within 2%: widths are solved for. {' '.join(notes)}"
    text = (
        f"{name}: {count_text(s.n_train_bytes)}B to train on, {count_text(s.n_valid_bytes)}B to watch, "
        f"{count_text(sum(s.block_bytes))}B of {count_text(s.n_test_bytes)}B to test on; SHA-256 {s.data_hash[:16]}"
    )
    seeds = (
        f" and the variance over {len(s.seeds)} seeds with Student's t"
        if len(s.seeds) > 1
        else "; one seed: other seeds were not tried, so luck of the seed is not in it"
    )
    rows = [
        ("Text", text),
        ("Budget", f"{s.budget}, for each contender and seed"),
        ("Size", size),
        ("Order", f"the same text in the same order, {s.n_batch} lanes of {s.n_context} tokens a step, for each"),
        ("Tuning", "one trial each, with the default learning rate and schedule unless the settings below differ"),
        ("Seeds", ", ".join(map(str, s.seeds))),
        ("Samples", s.sampling),
        ("Score", SCORE),
        ("Interval", f"95%, from a bootstrap over {len(s.block_bytes)} blocks of the test text{seeds}"),
        ("p", P),
        ("FLOPs", "2 × multiply-adds of the matrix products, three times the forward pass; counting has none"),
        ("Machine", s.hardware),
        ("Versions", ", ".join(f"{k} {v}" for k, v in s.versions.items())),
        ("When", f"{s.date}, {duration_text(s.seconds)} in all"),
    ]
    settings = "".join(_settings(c, looks[c.name]) for c in comparison.contenders)
    return facts(rows) + how_to_repeat(s.command) + fold("Every contender's settings", settings)


def _settings(contender: ContenderResult, look: Look) -> str:
    rates = [s.highest_lr for s in contender.seeds if s.highest_lr is not None]
    sections = {"model": {"name": contender.model, **contender.config}}
    if rates or contender.score is None:  # counting has no optimizer
        optimizer = {**contender.training.get("optimizer", {}), **({"lr": f"{rates[0]:.3g}"} if rates else {})}
        sections |= {"optimizer": optimizer, "schedule": contender.training.get("schedule", {})}
    lines = ((name, ", ".join(f"{k} {setting_text(v)}" for k, v in keys.items())) for name, keys in sections.items())
    return f'<h3 style="color:{look.colour}">{escape(contender.name)}</h3>{facts(lines)}'


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
SCORE = (
    "bits per byte: nats of all test tokens / (bytes of the test text × ln 2), the mean over seeds. It does not depend "
    "on how the text is cut into tokens"
)
P = (
    "sign-flip test on the blocks' differences between neighbours; settled means p < 0.05 and an interval of the "
    "difference, over blocks and seeds, that leaves out zero; one seed of a trained model settles nothing"
)
