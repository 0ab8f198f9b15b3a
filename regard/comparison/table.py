"""The ranking as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from regard.comparison.budget import count_text, duration_text
from regard.comparison.result import Comparison, ContenderResult, Score
from regard.comparison.words import ONE_SEED, p_text
from regard.report.palette import looks_of

COSTS: tuple[tuple[str, Callable[[ContenderResult, Score], str]], ...] = (
    ("time", lambda _, s: duration_text(s.seconds)),
    ("params", lambda c, _: _size(c)),
    ("tokens", lambda _, s: count_text(s.train_tokens)),
    ("FLOPs", lambda _, s: f"{s.flops:.2g}".replace("e+", "e") if s.flops else "none"),
    ("perplexity", lambda _, s: f"{s.perplexity_per_token:,.4g}"),
    ("tokens/s", lambda _, s: count_text(s.tokens_per_second)),
)
"""What each contender cost, the most telling first: a narrow terminal shows the first few."""


def comparison_table(comparison: Comparison) -> RenderableType:
    """Best first; the bar shows the 95% interval on one scale for all, and under it what the marks mean."""
    return _Fitting(comparison)


@dataclass(frozen=True)
class _Fitting:
    """Drawn when the width is known."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(" ".join(self.comparison.headline), style="bold")
        yield Text()
        if self.comparison.ranked:
            yield _widest(self.comparison, console, options)
            yield Text()
        yield from _notes(self.comparison)


def _widest(comparison: Comparison, console: Console, options: ConsoleOptions) -> Table:
    """The table with as many columns as the terminal has room for."""
    room = options.max_width
    for n_costs, bar_width in ((6, 18), (5, 16), (4, 14), (3, 12), (2, 12), (2, 8), (1, 0)):
        table = _ranking(comparison, n_costs, bar_width)
        if console.measure(table, options=options.update(max_width=10_000)).maximum <= room:
            break
    return table


def _ranking(comparison: Comparison, n_costs: int, bar_width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("model", no_wrap=True)
    table.add_column("bits/byte", justify="right", no_wrap=True)
    table.add_column("95% interval", no_wrap=True)
    table.add_column("against next", no_wrap=True)
    for name, _ in COSTS[:n_costs]:
        table.add_column(name, justify="right", no_wrap=True)
    scores = [c.score for c in comparison.ranked if c.score is not None]
    low, high = min(s.low for s in scores), max(s.high for s in scores)
    against = {n.better: n for n in comparison.neighbours}
    looks = looks_of(c.name for c in comparison.contenders)
    for place, contender in enumerate(comparison.ranked, start=1):
        score = contender.score
        assert score is not None
        neighbour = against.get(contender.name)
        colour = looks[contender.name].colour
        p = "" if neighbour is None else p_text(neighbour.p) + ("" if neighbour.is_clear else " ?")
        interval = Text(f"{score.low:.3f}–{score.high:.3f} ") + bar(score, low, high, colour, bar_width)
        costs = [value(contender, score) for _, value in COSTS[:n_costs]]
        shown = Text(contender.name + ("" if contender.is_comparable else "†"), style=f"bold {colour}")
        table.add_row(str(place), shown, Text(f"{score.bits_per_byte:.3f}", style="bold"), interval, p, *costs)
    return table


def bar(score: Score, low: float, high: float, colour: str, width: int) -> Text:
    """The interval as a line with a dot at the mean, on the scale from `low` to `high`.

    >>> from regard.comparison.result import Score
    >>> score = Score(bits_per_byte=2.0, low=1.5, high=2.5, perplexity_per_token=1.0, train_tokens=1.0, flops=1.0,
    ...     seconds=1.0, tokens_per_second=1.0)
    >>> bar(score, 1.0, 3.0, "", width=9).plain
    '  ━━●━━  '
    """
    return interval_bar((score.low, score.bits_per_byte, score.high), low, high, colour, width)


def interval_bar(values: tuple[float, float, float], low: float, high: float, colour: str, width: int) -> Text:
    """The same for any low end, middle and high end."""
    span = max(high - low, 1e-9)
    a, m, b = (round((v - low) / span * (width - 1)) for v in values)
    cells = "".join("●" if i == m else "━" if a <= i <= b else " " for i in range(width))
    return Text(cells, style=colour)


def _size(contender: ContenderResult) -> str:
    size = "" if contender.n_parameters is None else count_text(contender.n_parameters)
    return size + ("*" if contender.parameters_note else "")


def _notes(comparison: Comparison) -> list[Text]:
    lines = [f"* {c.name}: {c.parameters_note}." for c in comparison.ranked if c.parameters_note]
    lossy = [c.name for c in comparison.ranked if not c.is_comparable]
    if lossy and len(lossy) == len(comparison.ranked):
        lines.append("† the tokenizer loses text: these scores can be compared with each other, and with nothing else.")
    else:
        lines += [f"† {name}: its tokenizer loses text, so it cannot be ranked among the others." for name in lossy]
    if any(not n.is_clear for n in comparison.neighbours):
        lines.append("? the order of these two is not settled.")
    alone = [c.name for c in comparison.ranked if c.has_one_seed]
    if alone:
        lines.append(f"{', '.join(alone)}: {ONE_SEED}.")
    if len(comparison.neighbours):
        lines.append("p: against the one below, paired on the same blocks of test text; seeds are in the intervals.")
    notes = [Text(line, style="dim") for line in lines]
    for contender in comparison.contenders:
        for failure in contender.failures:
            notes.append(Text(f"{contender.name}, seed {failure.seed}, did not finish: {failure.reason}", style="red"))
    return notes
