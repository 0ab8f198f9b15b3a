"""A ranking: scores with intervals on one scale, what each cost, and how sure each place is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from regard.compare.result import Comparison, Contender, PairResult
from regard.report.chart import decimals
from regard.report.palette import Look
from regard.score.figures import Measure, count_text, duration_text, flops_text, linear_ticks, or_dash, p_text
from regard.score.judges import SAME_CONTEXT

HEADS = {
    "perplexity": "perplexity\nper token",
    SAME_CONTEXT: "same\ncontext",
    "valid": "validation\nscore",
    "without embeddings": "without\nembeddings",
}


def ranking_figure(comparison: Comparison, looks: Mapping[str, Look]) -> str:
    """A row for every contender, best first; those whose tokenizers lose text in parts by themselves."""
    measure = comparison.setup.measure
    scores = [c.score for c in comparison.ranked if c.score is not None]
    if not scores:
        return ""
    low, high = min(s.low for s in scores), max(s.high for s in scores)
    margin = 0.06 * max(high - low, 0.5 if measure.is_higher_better else 0.05)
    scale = (low - margin, high + margin)
    pairs = {pair.better: pair for pair in comparison.neighbours}
    counted = {f"{comparison.setup.unit}s": f"training\n{comparison.setup.unit}s"}
    heads = [(HEADS | counted).get(name, name) for name, _ in _columns(comparison, comparison.ranked[0])]
    drawn = [_head(scale, measure.name, heads)]
    for group in comparison.groups:
        if lossy := group[0].lossy:
            drawn.append(f'<p class="apart">Ranked apart: the tokenizer loses text, {escape(lossy)}</p>')
        for place, contender in enumerate(group, start=1):
            drawn.append(_row(place, contender, looks[contender.name], comparison, scale))
            if contender.name in pairs:
                drawn.append(_gap(pairs[contender.name], measure))
    return f'<div class="ranking" style="--n-costs:{len(heads)}">{"".join(drawn)}</div>'


def _columns(comparison: Comparison, contender: Contender) -> list[tuple[str, str]]:
    """What stands at the right of a row: second opinions, and what it cost."""
    score, watched = contender.score, comparison.setup.watched_measure
    assert score is not None
    size = "" if contender.n_parameters is None else count_text(contender.n_parameters)
    has_inner = any(c.n_non_embedding is not None for c in comparison.ranked)
    return [
        *((name, f"{value:.4g}") for name, value in score.others.items()),
        *(
            [("valid", or_dash(watched.value, contender.valid))]
            if any(c.valid is not None for c in comparison.ranked)
            else []
        ),
        ("parameters", size + ("*" if contender.size_note else "")),
        *([("without embeddings", or_dash(count_text, contender.n_non_embedding))] if has_inner else []),
        (f"{comparison.setup.unit}s", or_dash(count_text, contender.tokens)),
        ("FLOPs", or_dash(flops_text, contender.flops)),
        ("time", or_dash(duration_text, contender.seconds)),
    ]


def _gap(pair: PairResult, measure: Measure) -> str:
    """What stands between two rows: how far one is ahead, whether that is settled, and the numbers in a tip."""
    difference, low, high = (measure.exact(value) for value in (pair.difference, pair.low, pair.high))
    tip = escape(f"{pair.better} over {pair.worse}: {difference} {measure.name}, 95% interval {low} to {high}")
    note = "" if pair.is_settled else f" · not settled{'' if pair.why.startswith('p ') else f', {pair.why}'}"
    text = escape(f"{measure.value(pair.difference)} ahead, {p_text(pair.p_holm)}{note}")
    return f'<div class="gap {"clear" if pair.is_settled else "unclear"}" data-tip="{tip}"><span>{text}</span></div>'


def _head(scale: tuple[float, float], metric: str, heads: Sequence[str]) -> str:
    values = linear_ticks(*scale, 5)
    ticks = "".join(f'<span style="left:{_percent(t, scale)}%">{t:.{decimals(values)}f}</span>' for t in values)
    costs = "".join("<span>" + escape(head).replace("\n", "<br>") + "</span>" for head in heads)
    return (
        '<div class="rank head"><span class="place"></span><span class="who">model</span>'
        f'<span class="value">{escape(metric)}</span><span class="strip ticks">{ticks}</span>'
        f'<span class="costs">{costs}</span></div>'
    )


def _row(place: int, contender: Contender, look: Look, comparison: Comparison, scale: tuple[float, float]) -> str:
    score, measure = contender.score, comparison.setup.measure
    assert score is not None
    left, right, middle = (_percent(v, scale) for v in (score.low, score.high, score.value))
    grid = "".join(f'<i class="g" style="left:{_percent(t, scale)}%"></i>' for t in linear_ticks(*scale, 5))
    low, middle_text, high = (measure.exact(value) for value in (score.low, score.value, score.high))
    tip = f"{contender.name}: {middle_text} {measure.name}, 95% interval {low} to {high}"
    interval = measure.interval(score.low, score.high, " – ")
    columns = _columns(comparison, contender)
    cells = "".join(f'<span data-label="{escape(label)}">{escape(value)}</span>' for label, value in columns)
    return (
        f'<div class="rank"><span class="place">{place}</span>'
        f'<span class="who"><b style="color:{look.colour}">{escape(contender.name)}</b>'
        f"<small>{escape(contender.about)}</small></span>"
        f'<span class="value">{measure.value(score.value)}<small>{interval}</small></span>'
        f'<span class="strip" data-tip="{escape(tip, quote=True)}">{grid}'
        f'<i class="interval" style="left:{left}%;width:{right - left:.2f}%;background:{look.colour}"></i>'
        f'<i class="dot {look.shape}" style="left:{middle}%;background:{look.colour}"></i></span>'
        f'<span class="costs">{cells}</span></div>'
    )


def _percent(value: float, scale: tuple[float, float]) -> float:
    return round(100 * (value - scale[0]) / (scale[1] - scale[0]), 2)
