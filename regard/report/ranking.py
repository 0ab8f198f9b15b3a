"""The ranking: bits per byte with intervals on one scale, what each cost, and the test between neighbours."""

from __future__ import annotations

from html import escape

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison, ContenderResult, Neighbours
from regard.comparison.words import p_text, why_unsettled
from regard.report.chart import decimals, linear_ticks
from regard.report.palette import colour_of, shape_of


def ranking_figure(comparison: Comparison) -> str:
    """One row a contender, best first; then those that failed, with their reasons."""
    scores = [c.score for c in comparison.ranked if c.score is not None]
    if not scores:
        return _failed(comparison)
    low, high = min(s.low for s in scores), max(s.high for s in scores)
    margin = 0.06 * max(high - low, 0.05)
    scale = (low - margin, high + margin)
    looks = {c.name: (colour_of(i), shape_of(i)) for i, c in enumerate(comparison.contenders)}
    neighbours = {n.better: n for n in comparison.neighbours}
    rows = []
    for place, contender in enumerate(comparison.ranked, start=1):
        rows.append(_row(place, contender, *looks[contender.name], scale))
        if contender.name in neighbours:
            rows.append(_gap(neighbours[contender.name], comparison))
    return f'<div class="ranking">{_head(scale)}{"".join(rows)}</div>{_failed(comparison)}'


def _head(scale: tuple[float, float]) -> str:
    values = linear_ticks(*scale, 5)
    ticks = "".join(f'<span style="left:{_percent(t, scale)}%">{t:.{decimals(values)}f}</span>' for t in values)
    costs = "".join(
        f"<span>{c}</span>" for c in ("perplexity<br>per token", "parameters", "training<br>tokens", "FLOPs", "time")
    )
    return (
        '<div class="rank head"><span class="place"></span><span class="who">model</span>'
        f'<span class="value">bits per byte</span><span class="strip ticks">{ticks}</span>'
        f'<span class="costs">{costs}</span></div>'
    )


def _row(place: int, contender: ContenderResult, colour: str, shape: str, scale: tuple[float, float]) -> str:
    score = contender.score
    assert score is not None
    left, right, middle = (_percent(v, scale) for v in (score.low, score.high, score.bits_per_byte))
    grid = "".join(f'<i class="g" style="left:{_percent(t, scale)}%"></i>' for t in linear_ticks(*scale, 5))
    tip = f"{contender.name}: {score.bits_per_byte:.4f} bits per byte, 95% interval {score.low:.4f} to {score.high:.4f}"
    mark = "" if contender.is_comparable else '<sup title="lossy tokenizer: not comparable">†</sup>'
    size = "" if contender.n_parameters is None else count_text(contender.n_parameters)
    costs = (
        ("perplexity", f"{score.perplexity_per_token:.4g}"),
        ("parameters", size + ("*" if contender.parameters_note else "")),
        ("tokens", count_text(score.train_tokens)),
        ("FLOPs", f"{score.flops:.2g}".replace("e+", "e") if score.flops else "none"),
        ("time", duration_text(score.seconds)),
    )
    cells = "".join(f'<span data-label="{label}">{escape(value)}</span>' for label, value in costs)
    return (
        f'<div class="rank"><span class="place">{place}</span>'
        f'<span class="who"><b style="color:{colour}">{escape(contender.name)}</b>{mark}'
        f"<small>{escape(_about(contender))}</small></span>"
        f'<span class="value">{score.bits_per_byte:.3f}<small>{score.low:.3f} – {score.high:.3f}</small></span>'
        f'<span class="strip" data-tip="{escape(tip, quote=True)}">{grid}'
        f'<i class="interval" style="left:{left}%;width:{right - left:.2f}%;background:{colour}"></i>'
        f'<i class="dot {shape}" style="left:{middle}%;background:{colour}"></i></span>'
        f'<span class="costs">{cells}</span></div>'
    )


def _about(contender: ContenderResult) -> str:
    model = "" if contender.model == contender.name else f"{contender.model}, "
    width = next((f"{v} wide, " for k, v in contender.config.items() if k == "d_model"), "")
    layers = contender.config.get("n_layers")
    depth = "" if layers is None else f"{layers} layer{'s' * (layers != 1)}, "
    order = contender.config.get("order")
    tokenizer = contender.tokenizer
    tokens = "" if tokenizer is None else f"{tokenizer.kind} {tokenizer.vocab_size}"
    return model + (f"order {order}, " if order else "") + depth + width + tokens


def _gap(n: Neighbours, comparison: Comparison) -> str:
    words = f"{n.difference:.3f} ahead, {p_text(n.p)}"
    tip = f"{n.better} over {n.worse}: {n.difference:.4f} bits per byte, 95% interval {n.low:.4f} to {n.high:.4f}"
    kind = "clear" if n.is_clear else "unclear"
    note = "" if n.is_clear else " · not settled" + ("" if n.p >= 0.05 else f", {why_unsettled(n, comparison.ranked)}")
    return f'<div class="gap {kind}" data-tip="{escape(tip, quote=True)}"><span>{words}{note}</span></div>'


def _failed(comparison: Comparison) -> str:
    lines = [
        f"<li><b>{escape(c.name)}</b>{'' if c.score is None else f', seed {f.seed}'}: {escape(f.reason)}</li>"
        for c in comparison.contenders
        for f in (c.failures[:1] if c.score is None else c.failures)
    ]
    return f'<div class="failed"><h3>Did not finish</h3><ul>{"".join(lines)}</ul></div>' if lines else ""


def _percent(value: float, scale: tuple[float, float]) -> float:
    return round(100 * (value - scale[0]) / (scale[1] - scale[0]), 2)
