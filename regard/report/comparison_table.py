"""A comparison as tables for the terminal: the ranking, and what scores cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from regard.compare.headline import ONE_SEED, explain_seeds, find_disagreement
from regard.compare.result import Comparison, Contender
from regard.report.palette import looks_of
from regard.score.figures import cost_text, count_text, duration_text, flops_text, p_text

Value = Callable[[Comparison, Contender], str]
"""The text in a contender's cell."""

COLUMNS: dict[str, Value] = {
    "vs next better": lambda c, row: _against(c, row, max(0, c.ranking.index(row.name) - 1)),
    "vs best": lambda c, row: _against(c, row, 0),
    "valid": lambda c, row: "–" if row.valid is None else c.setup.watched_measure.value(row.valid),
    "time": lambda c, row: duration_text(row.seconds),
    "FLOPs": lambda c, row: flops_text(row.flops),
    "params": lambda c, row: _size(row),
    "tokens": lambda c, row: count_text(row.tokens),
    "tokens/s": lambda c, row: count_text(row.tokens_per_second),
}
GIVEN_UP = ("tokens/s", "tokens", "params", "valid", "vs best", "others", "FLOPs", "time")
"""What a narrow terminal does without, one after the other."""
BARS = (16, 10, 0)
"""Widths of the bar that draws an interval; the narrower ones go before any column does."""


@dataclass(frozen=True)
class ComparisonTable:
    """Drawn when the width is known: best first, with as many columns as there is room for."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(" ".join(self.comparison.headline), style="bold")
        yield Text()
        if self.comparison.ranked:
            yield _first_that_fits(self._candidates(), console, options)
            yield Text()
        if self.comparison.costs and self.comparison.ranked:
            n = len(self.comparison.costs)
            sizes = [(n, True), *((k, False) for k in range(n, 0, -1))]
            yield _first_that_fits([_costs(self.comparison, *size) for size in sizes], console, options)
            yield Text()
        yield from (Text(note, style="dim") for note in notes(self.comparison))
        for contender in self.comparison.contenders:
            for failure in contender.failures:
                text = f"{contender.name}, seed {failure.seed}, did not finish: {failure.reason}"
                yield Text(text, style="red")

    def _candidates(self) -> list[Table]:
        """The tables from the widest to the narrowest."""
        comparison = self.comparison
        columns = ["others", *COLUMNS]
        if len(comparison.ranked) <= 2:
            columns.remove("vs best")
        if all(c.valid is None for c in comparison.ranked):
            columns.remove("valid")
        tables = [_ranking(comparison, columns, width) for width in BARS]
        for name in GIVEN_UP:
            columns = [column for column in columns if column != name]
            tables.append(_ranking(comparison, columns, 0))
        return tables


def _first_that_fits(tables: list[Table], console: Console, options: ConsoleOptions) -> Table:
    """The first table that the terminal has room for, or the last."""
    endless = options.update(max_width=10_000)
    fitting = (t for t in tables if console.measure(t, options=endless).maximum <= options.max_width)
    return next(fitting, tables[-1])


def _ranking(comparison: Comparison, columns: list[str], bar_width: int) -> Table:
    measure, ranked = comparison.setup.measure, comparison.ranked
    scores = [c.score for c in ranked if c.score is not None]
    others = list(scores[0].others) if "others" in columns else []
    shown = [column for column in COLUMNS if column in columns]
    table = _new_table("", "model", measure.short_name, "95% interval")
    heads = {"valid": f"valid {comparison.setup.watched_measure.short_name}"}
    for name in (*shown[:1], *others, *shown[1:]):
        table.add_column(heads.get(name, name), justify="right", no_wrap=True)
    low, high = min(s.low for s in scores), max(s.high for s in scores)
    looks = looks_of(c.name for c in comparison.contenders)
    for place, (contender, score) in enumerate(zip(ranked, scores, strict=True), start=1):
        colour = looks[contender.name].colour
        interval = Text(f"{measure.interval(score.low, score.high)} ")
        interval += draw_interval((score.low, score.value, score.high), low, high, colour, bar_width)
        mark = "*" if contender.size_note and "params" not in columns else ""  # else it stands behind the size
        shown_name = Text(contender.name + mark + ("" if contender.is_comparable else "†"), style=f"bold {colour}")
        cells = [COLUMNS[column](comparison, contender) for column in shown]
        cells[1:1] = [f"{score.others[other]:,.4g}" for other in others]
        table.add_row(str(place), shown_name, Text(measure.value(score.value), style="bold"), interval, *cells)
    return table


def draw_interval(values: tuple[float, float, float], low: float, high: float, colour: str, width: int) -> Text:
    """A line from the low to the high end with a dot at the middle, on the scale from `low` to `high`.

    >>> draw_interval((1.5, 2.0, 2.5), 1.0, 3.0, "", width=9).plain
    '  ━━●━━  '
    """
    span = max(high - low, 1e-9)
    a, m, b = (round((v - low) / span * (width - 1)) for v in values)
    cells = "".join("●" if i == m else "━" if a <= i <= b else " " for i in range(width))
    return Text(cells, style=colour)


def _against(comparison: Comparison, contender: Contender, place: int) -> str:
    """How far the score is from a better one's, and whether that may be luck; "" for the best itself."""
    pair = comparison.pair(comparison.ranking[place], contender.name)
    if pair is None:
        return ""
    sign, digits = (-1, 2) if comparison.setup.is_higher_better else (1, 3)
    return f"{sign * pair.difference:+.{digits}f}, {p_text(pair.p)}" + ("" if pair.is_clear else " ?")


def _size(contender: Contender) -> str:
    size = "" if contender.n_parameters is None else count_text(contender.n_parameters)
    return size + ("*" if contender.size_note else "")


def _costs(comparison: Comparison, n_levels: int, has_time: bool) -> Table:
    """The FLOPs, and the time, that each needed to first have one of the hardest validation scores."""
    order, rows = [c.name for c in comparison.contenders], comparison.costs[-n_levels:]
    head = f"to reach {comparison.setup.watched_measure.short_name}"
    table = _new_table(head, *(f"{row.level:g}" for row in rows))
    for name in comparison.ranking:
        costs = ((row.flops[order.index(name)], row.seconds[order.index(name)]) for row in rows)
        table.add_row(name, *(cost_text(flops, seconds, ", ", has_time) for flops, seconds in costs))
    return table


def _new_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def notes(comparison: Comparison) -> list[str]:
    """What has to be known to read the tables."""
    setup, ranked = comparison.setup, comparison.ranked
    if not ranked:
        return []
    how = f", {setup.decoding}" if setup.decoding else ""
    lines = [f"{setup.metric} of {setup.n_tested:,} test {setup.items}{how}: {setup.signature}"]
    lines += [f"* {c.name}: {c.size_note}." for c in ranked if c.size_note]
    lossy = [c.name for c in ranked if not c.is_comparable]
    if lossy and len(lossy) == len(ranked):
        lines.append("† the tokenizer loses text: these scores can be compared with each other, and with nothing else.")
    else:
        lines += [f"† {name}: its tokenizer loses text, so it cannot be ranked among the others." for name in lossy]
    if setup.n_left_out:
        lines.append(f"Test items left out, since they are longer than one of the models reads: {setup.n_left_out:,}.")
    if any(not pair.is_clear for pair in comparison.pairs):
        lines.append("? the order of these two is not settled by these test items and seeds.")
    if setup.needs_seeds and (alone := [c.name for c in ranked if c.has_one_seed]):
        lines.append(f"{', '.join(alone)}: {ONE_SEED}.")
    if comparison.pairs:
        lines.append(f"p: {setup.test.partition(';')[0]}. {explain_seeds(comparison)}")
    for contender in ranked:
        if len(contender.runs) > 1:
            lines.append(f"{contender.name}: {', '.join(setup.measure.value(run.score) for run in contender.runs)}")
    if comparison.costs:
        lines.append(
            "to reach: training FLOPs and time at the first evaluation on the validation data that was as good."
        )
    disagreement = find_disagreement(comparison)
    return [*lines, *setup.notes, *([disagreement] if disagreement else [])]
