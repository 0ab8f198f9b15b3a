"""The ranking as a table for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from regard.compare.budget import count_text, duration_text
from regard.compare.result import Comparison, ContenderResult, Score
from regard.compare.words import p_text
from regard.lens.page.palette import colour_of

BAR_WIDTH = 18


def comparison_table(comparison: Comparison) -> RenderableType:
    """Best first; the bar shows the 95% interval on one scale for all, and under it what the marks mean."""
    parts: list[RenderableType] = [Text(" ".join(comparison.headline), style="bold"), Text()]
    if comparison.ranked:
        parts.append(_ranking(comparison))
    notes = _notes(comparison)
    return Group(*parts, Text(), *notes) if notes else Group(*parts)


def _ranking(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", justify="right")
    table.add_column("model")
    table.add_column("bits per byte", justify="right")
    table.add_column("95% interval", no_wrap=True)
    table.add_column("p", no_wrap=True)
    for name in ("perplexity", "parameters", "tokens", "FLOPs", "time", "tokens/s"):
        table.add_column(name, justify="right", no_wrap=True)
    scores = [c.score for c in comparison.ranked if c.score is not None]
    low, high = min(s.low for s in scores), max(s.high for s in scores)
    against = {n.better: n for n in comparison.neighbours}
    order = [c.name for c in comparison.contenders]
    for place, contender in enumerate(comparison.ranked, start=1):
        score = contender.score
        assert score is not None
        neighbour = against.get(contender.name)
        colour = colour_of(order.index(contender.name))
        p = "" if neighbour is None else p_text(neighbour.p) + ("" if neighbour.is_clear else " ?")
        table.add_row(
            str(place),
            f"[bold {colour}]{escape(contender.name)}[/]{'' if contender.is_comparable else '†'}",
            f"[bold]{score.bits_per_byte:.3f}[/]",
            Text(f"{score.low:.3f} ") + bar(score, low, high, colour) + Text(f" {score.high:.3f}"),
            p,
            f"{score.perplexity_per_token:,.4g}",
            _size(contender),
            count_text(score.train_tokens),
            f"{score.flops:.2g}".replace("e+", "e") if score.flops else "none",
            duration_text(score.seconds),
            count_text(score.tokens_per_second),
        )
    return table


def bar(score: Score, low: float, high: float, colour: str, width: int = BAR_WIDTH) -> Text:
    """The interval as a line with a dot at the mean, on the scale from `low` to `high`.

    >>> from regard.compare.result import Score
    >>> score = Score(bits_per_byte=2.0, low=1.5, high=2.5, perplexity_per_token=1.0, train_tokens=1.0, flops=1.0,
    ...     seconds=1.0, tokens_per_second=1.0)
    >>> bar(score, 1.0, 3.0, "", width=9).plain
    '  ━━●━━  '
    """
    span = max(high - low, 1e-9)
    a, m, b = (round((v - low) / span * (width - 1)) for v in (score.low, score.bits_per_byte, score.high))
    cells = "".join("●" if i == m else "━" if a <= i <= b else " " for i in range(width))
    return Text(cells, style=colour)


def _size(contender: ContenderResult) -> str:
    size = "" if contender.n_parameters is None else count_text(contender.n_parameters)
    return size + ("*" if contender.parameters_note else "")


def _notes(comparison: Comparison) -> list[Text]:
    lines = [f"* {c.name}: {c.parameters_note}." for c in comparison.ranked if c.parameters_note]
    lines += [f"† {c.name}: its tokenizer loses text, so it cannot be ranked." for c in comparison.ranked
              if not c.is_comparable]  # fmt: skip
    if any(not n.is_clear for n in comparison.neighbours):
        lines.append("? the order of these two is not settled.")
    if len(comparison.neighbours):
        lines.append("p: against the one below, paired on the same blocks of test text.")
    notes = [Text(line, style="dim") for line in lines]
    for contender in comparison.contenders:
        for failure in contender.failures:
            notes.append(Text(f"{contender.name}, seed {failure.seed}, did not finish: {failure.reason}", style="red"))
    return notes
