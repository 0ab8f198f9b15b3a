"""A comparison of runs as one self-contained page, in the look of the comparison report: it loads nothing.

`render_systems` is a pure function. Everything that comes from data, models or the user is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from regard.comparison.budget import count_text, duration_text
from regard.comparison.words import p_text
from regard.report.chart import Plot, charts_for_screen_and_phone, decimals, linear_ticks, x_range
from regard.report.palette import colour_of, shape_of
from regard.report.shell import facts, report_page, section
from regard.systems.curves import AXES, curves_by, score_range
from regard.systems.result import Duel, Example, System, SystemsComparison
from regard.systems.table import notes, valid_text
from regard.systems.words import cost_text, flops_text, level_text, seeds_text


def render_systems(comparison: SystemsComparison) -> str:
    """The whole page as text."""
    setup = comparison.setup
    first, *rest = comparison.headline
    better = "higher is better" if setup.is_watched_upwards else "lower is better"
    sections = [
        section("Ranking", RANKING.format(metric=setup.metric), _ranking(comparison)),
        section("Better, or lucky with the test data?", DUELS, _duels(comparison)),
        section(
            "Learning", f"{_capital(setup.watched)} on the validation data, {better}. {LEARNING}", _curves(comparison)
        ),
        section("What a score costs", REACHED, _reached(comparison)),
        section("Side by side", EXAMPLES[setup.task], _examples(comparison)),
        section("How it was measured", "", _method(comparison)),
    ]
    tested = f"{setup.n_tested:,} {ITEMS[setup.task]}"
    return report_page(
        title=f"Regard: {', '.join(s.name for s in comparison.systems)}",
        kicker=f"Regard · {setup.task}: {sum(len(s.runs) for s in comparison.systems)} finished runs, {tested}",
        headline=first,
        lede=" ".join(rest),
        sections=sections,
        made="Made by Regard from compare.json; all outputs are in the folder outputs beside it.",
        own_css=OWN_CSS,
    )


ITEMS = {"translation": "test sentences", "parsing": "test sentences", "captions": "test pictures"}
RANKING = (
    "{metric} on the test data; higher is better. Bars are 95% intervals over draws of the test data. They may overlap "
    "where the order is sure: what is hard is hard for all, and two systems are compared on the same draws."
)
DUELS = (
    "Each system against the next better one and against the best, by a paired bootstrap: test items are drawn with "
    "replacement, and both are scored on every draw."
)
LEARNING = "Point at a name or a line to see it alone."
REACHED = "Training FLOPs and training time at the first evaluation whose validation score was as good; – means never."
EXAMPLES = {
    "translation": "Test sentences that not all translate alike, evenly over the test data. Words that the reference "
    "does not have are marked.",
    "parsing": "Test sentences that not all parse alike, evenly over the test data.",
    "captions": "Test pictures of which not all say the same, evenly over the test data. Words that no reference has "
    "are marked.",
}

OWN_CSS = """
.costs { grid-template-columns: none; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); white-space: nowrap; }
@media (min-width: 901px) {
  .rank { grid-template-columns: 26px minmax(190px, 1.1fr) 100px minmax(150px, 1.3fr) minmax(430px, 2.2fr); }
}
.signature { margin: 18px 0 0; color: var(--faint); font: 12.5px/1.5 var(--mono); overflow-wrap: anywhere; }
.unclear-row td { color: #9c5a00; }
.example { display: grid; grid-template-columns: 150px 1fr; gap: 3px 18px; padding: 16px 0;
  border-bottom: 1px solid var(--line); font-size: 15px; }
.example > span { color: var(--soft); font-size: 13.5px; padding-top: 1px; overflow-wrap: anywhere; max-width: 12em; }
.example > b { font-size: 13.5px; padding-top: 1px; overflow-wrap: anywhere; max-width: 14em; }
.example > p { margin: 0; overflow-wrap: anywhere; }
.example .source { color: var(--soft); }
.example .reference { font-weight: 600; }
.example .miss { border-bottom: 2px solid #e8a06c; }
.example img { display: block; width: 176px; height: auto; border-radius: 4px; }
.trees p { font: 13px/1.5 var(--mono); }
@media (max-width: 620px) {
  .example { grid-template-columns: 1fr; gap: 0; } .example > p { margin-bottom: 8px; }
}
"""


def _ranking(comparison: SystemsComparison) -> str:
    ranked = comparison.ranked
    low, high = min(s.low for s in ranked), max(s.high for s in ranked)
    margin = 0.06 * max(high - low, 0.5)
    scale = (low - margin, high + margin)
    rows = [_head(comparison, scale)]
    for place, system in enumerate(ranked):
        rows.append(_row(comparison, place, system, scale))
        if place + 1 < len(ranked):
            rows.append(_gap(comparison.duel(system.name, ranked[place + 1].name), comparison.setup.metric))
    signature = f'<p class="signature">{escape(comparison.setup.metric)}: {escape(comparison.setup.signature)}</p>'
    return f'<div class="ranking">{"".join(rows)}</div>{signature}'


def _columns(comparison: SystemsComparison) -> list[tuple[str, str]]:
    """Short names of what stands at the right of a row, and how they are written in its head."""
    watched = {"bits per byte": "bits/byte"}.get(comparison.setup.watched, comparison.setup.watched)
    second = [] if comparison.systems[0].chrf is None else [("chrF", "chrF")]
    valid = ("valid", f"validation<br>{escape(watched)}")
    costs = [("parameters", "parameters"), ("tokens", "training<br>tokens"), ("FLOPs", "FLOPs"), ("time", "time")]
    return [*second, valid, *costs]


def _head(comparison: SystemsComparison, scale: tuple[float, float]) -> str:
    values = linear_ticks(*scale, 5)
    ticks = "".join(f'<span style="left:{_percent(t, scale)}%">{t:.{decimals(values)}f}</span>' for t in values)
    costs = "".join(f"<span>{shown}</span>" for _, shown in _columns(comparison))
    return (
        '<div class="rank head"><span class="place"></span><span class="who">model</span>'
        f'<span class="value">{escape(comparison.setup.metric)}</span><span class="strip ticks">{ticks}</span>'
        f'<span class="costs">{costs}</span></div>'
    )


def _row(comparison: SystemsComparison, place: int, system: System, scale: tuple[float, float]) -> str:
    index = comparison.place(system.name)
    colour, shape = colour_of(index), shape_of(index)
    left, right, middle = (_percent(v, scale) for v in (system.low, system.high, system.score))
    grid = "".join(f'<i class="g" style="left:{_percent(t, scale)}%"></i>' for t in linear_ticks(*scale, 5))
    metric = comparison.setup.metric
    tip = f"{system.name}: {metric} {system.score:.2f}, 95% interval {system.low:.2f} to {system.high:.2f}"
    shown = {
        "chrF": "" if system.chrf is None else f"{system.chrf:.1f}",
        "valid": "–" if system.valid is None else valid_text(comparison, system.valid),
        "parameters": count_text(system.n_parameters),
        "tokens": count_text(system.tokens),
        "FLOPs": flops_text(system.flops),
        "time": duration_text(system.seconds),
    }
    cells = "".join(f'<span data-label="{name}">{escape(shown[name])}</span>' for name, _ in _columns(comparison))
    return (
        f'<div class="rank"><span class="place">{place + 1}</span>'
        f'<span class="who"><b style="color:{colour}">{escape(system.name)}</b>'
        f"<small>{escape(system.about)}</small></span>"
        f'<span class="value">{system.score:.2f}<small>{system.low:.1f} – {system.high:.1f}</small></span>'
        f'<span class="strip" data-tip="{escape(tip, quote=True)}">{grid}'
        f'<i class="interval" style="left:{left}%;width:{right - left:.2f}%;background:{colour}"></i>'
        f'<i class="dot {shape}" style="left:{middle}%;background:{colour}"></i></span>'
        f'<span class="costs">{cells}</span></div>'
    )


def _gap(duel: Duel, metric: str) -> str:
    interval = f"95% interval {duel.low:.2f} to {duel.high:.2f}"
    tip = f"{duel.better} over {duel.worse}: {duel.difference:.2f} {metric}, {interval}"
    kind, note = ("clear", "") if duel.is_clear else ("unclear", " · not settled")
    words = f"{duel.difference:.2f} ahead, {p_text(duel.p)}{note}"
    return f'<div class="gap {kind}" data-tip="{escape(tip, quote=True)}"><span>{words}</span></div>'


def _duels(comparison: SystemsComparison) -> str:
    rows = []
    for d in comparison.duels:
        cells = (
            f"{d.better} over {d.worse}",
            f"{d.difference:+.2f}",
            f"{d.low:+.2f} to {d.high:+.2f}",
            p_text(d.p).removeprefix("p = ").removeprefix("p "),
            f"{100 * d.wins:.1f}%",
            "yes" if d.is_clear else "not settled",
        )
        rows.append((cells, "" if d.is_clear else "unclear-row"))
    columns = ("", comparison.setup.metric, "95% interval", "p", "draws won", "clear")
    return _table(columns, rows)


def _reached(comparison: SystemsComparison) -> str:
    levels = [level_text(comparison.setup, row.level) for row in comparison.reached]
    rows = []
    for name in comparison.ranking:
        place = comparison.place(name)
        costs = ((row.flops[place], row.seconds[place]) for row in comparison.reached)
        rows.append(((name, *(cost_text(*cost, " · ") for cost in costs)), ""))
    return _table(("validation score", *levels), rows) if levels else ""


def _table(columns: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> str:
    """Scrolls by itself where the screen is narrow, so that the page never does."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr{f' class={kind}' if kind else ''}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells, kind in rows
    )
    return f'<div class="numbers"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _curves(comparison: SystemsComparison) -> str:
    """Charts behind a switch: against FLOPs, seconds and tokens."""
    if not any(system.curve for system in comparison.systems):
        return ""
    tabs, panels = [], []
    for i, (axis, label, text) in enumerate(AXES):
        series = curves_by(comparison, axis)
        plot = Plot(
            title=f"Learning curves, {label}",
            x_label=label,
            y_label=f"{comparison.setup.watched}, validation data",
            x_text=text,
            x_limits=x_range(series),
            y_limits=score_range(comparison, series),
            y_text=lambda y: valid_text(comparison, y),
        )
        charts = charts_for_screen_and_phone(series, plot)
        tabs.append(f'<button data-tab="curve-{axis}"{" class=on" if i == 0 else ""}>{label}</button>')
        panels.append(f'<div class="panel" id="curve-{axis}"{"" if i == 0 else " hidden"}>{charts}</div>')
    return f'<div class="tabs" role="tablist">{"".join(tabs)}</div>{"".join(panels)}'


def _examples(comparison: SystemsComparison) -> str:
    kind = "trees" if comparison.setup.task == "parsing" else ""
    return f'<div class="{kind}">{"".join(_example(comparison, e) for e in comparison.examples)}</div>'


def _example(comparison: SystemsComparison, example: Example) -> str:
    rows = []
    if example.picture is None:
        rows.append(f'<span>source {example.number:,}</span><p class="source">{escape(example.source)}</p>')
    else:
        shown = f'<img src="{escape(example.picture, quote=True)}" alt="">'
        rows.append(f"<span>{escape(example.source)}</span>{shown}")
    for reference in example.references:
        rows.append(f'<span>reference</span><p class="reference">{escape(reference)}</p>')
    for system in comparison.ranked:
        i = comparison.place(system.name)
        output = example.outputs[i]
        body = escape(output) if comparison.setup.task == "parsing" else marked(output, example.references)
        rows.append(f'<b style="color:{colour_of(i)}">{escape(system.name)}</b><p>{body or "(nothing)"}</p>')
    return f'<div class="example">{"".join(rows)}</div>'


def marked(output: str, references: Sequence[str]) -> str:
    """Escaped, with the words marked that no reference has, in any case.

    >>> marked("ein Hund & Katze", ["Ein Hund"])
    'ein Hund &amp; <span class="miss">Katze</span>'
    """
    known = {word.lower() for reference in references for word in re.findall(r"\w+", reference)}
    parts = re.split(r"(\w+)", output)  # what lies between words stands at the even places
    return "".join(
        f'<span class="miss">{escape(part)}</span>' if i % 2 and part.lower() not in known else escape(part)
        for i, part in enumerate(parts)
    )


def _method(comparison: SystemsComparison) -> str:
    s = comparison.setup
    rows = [
        ("Test data", f"{s.data}: {s.n_tested:,} {ITEMS[s.task]}; SHA-256 of the references {s.data_hash[:16]}"),
        ("Decoding", s.decoding),
        (s.metric, s.signature),
        *([("chrF", s.chrf_signature)] if s.chrf_signature else []),
        (
            "Interval, p",
            f"95% of {s.n_draws:,} draws of the test data (Koehn 2004); p as in sacreBLEU's --paired-bs; settled means "
            f"p < 0.05 and an interval of the difference that leaves out zero. {seeds_text(comparison)}",
        ),
        (
            "FLOPs, time",
            "of training alone: 2 × multiply-adds of the matrix products, three times the forward pass; time is that "
            "of the machine each was trained on, without evaluation and saving",
        ),
        *(("Note", note) for note in notes(comparison) if note in s.notes or "left out" in note),
        ("Machine", f"{s.hardware} (where this was tested, not trained)"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in s.versions.items())),
        ("When", s.date),
    ]
    command = f"<p>To repeat it:</p><pre class=command>{escape(s.command)}</pre>"
    return f"{facts(rows)}{command}{_settings(comparison)}"


def _settings(comparison: SystemsComparison) -> str:
    """Every run's settings, folded away until someone asks."""
    blocks = []
    for i, system in enumerate(comparison.systems):
        sections = {name: values for name, values in system.config.items() if isinstance(values, dict)}
        lines = ((name, ", ".join(f"{k} {v}" for k, v in values.items())) for name, values in sections.items())
        runs = ", ".join(f"{run} ({score:.2f})" for run, score in zip(system.runs, system.scores, strict=True))
        title = f'<h3 style="color:{colour_of(i)}">{escape(system.name)} <small>{escape(runs)}</small></h3>'
        blocks.append(f"{title}{facts(lines)}")
    return f"<details><summary>Every run's settings</summary>{''.join(blocks)}</details>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _percent(value: float, scale: tuple[float, float]) -> float:
    return round(100 * (value - scale[0]) / (scale[1] - scale[0]), 2)
