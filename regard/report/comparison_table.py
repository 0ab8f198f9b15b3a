"""A comparison as tables for the terminal: the ranking, and what scores cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from regard.compare.headline import find_disagreement, write_difference
from regard.compare.result import Comparison, Contender
from regard.report.palette import looks_of
from regard.score.figures import cost_text, count_text, duration_text, flops_text, join_names, or_dash, p_text
from regard.score.judges import SAME_CONTEXT

Value = Callable[[Comparison, Contender], str]
"""The text in a contender's cell."""

COLUMNS: dict[str, Value] = {
    "vs next better": lambda c, row: _against(c, row),
    "valid": lambda c, row: or_dash(c.setup.watched_measure.value, row.valid),
    "time": lambda c, row: or_dash(duration_text, row.seconds),
    "FLOPs": lambda c, row: or_dash(flops_text, row.flops),
    "params": lambda c, row: _size(row),
    "tokens": lambda c, row: or_dash(count_text, row.tokens),
    "tokens/s": lambda c, row: or_dash(count_text, row.tokens_per_second),
}
GIVEN_UP = ("tokens/s", "tokens", "params", "valid", "others", "FLOPs", "time")
"""What a narrow terminal does without, one after the other."""
BARS = (16, 10, 0)
"""Widths of the bar that draws an interval; the narrower ones go before any column does."""


@dataclass(frozen=True)
class ComparisonTable:
    """Drawn when the width is known: best first, with as many columns as there is room for."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(" ".join(self.comparison.headline), style="bold")
        yield from (Text(f"! {warning}", style="yellow") for warning in self.comparison.warnings)
        yield Text()
        if self.comparison.ranked:
            yield _first_that_fits(self._candidates(), console, options)
            yield Text()
        for group in self.comparison.groups:
            if len(group) > 2:
                forms = [_matrix(self.comparison, group, form) for form in ("names", "places", "marks")]
                yield _first_that_fits(forms, console, options)
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
    unit = f"{comparison.setup.unit}s"
    heads = {
        "valid": f"valid {comparison.setup.watched_measure.short_name}", "tokens": unit, "tokens/s": f"{unit}/s"
    }  # fmt: skip
    for name in (*shown[:1], *others, *shown[1:]):
        table.add_column(Text(heads.get(name, name)), justify="right", no_wrap=True)
    low, high = min(s.low for s in scores), max(s.high for s in scores)
    looks = looks_of(c.name for c in comparison.contenders)
    places = [place for group in comparison.groups for place in range(1, len(group) + 1)]
    for place, contender, score in zip(places, ranked, scores, strict=True):
        colour = looks[contender.name].colour
        interval = Text(f"{measure.interval(score.low, score.high)} ")
        interval += draw_interval((score.low, score.value, score.high), low, high, colour, bar_width)
        mark = "*" if contender.size_note and "params" not in columns else ""  # else it stands behind the size
        shown_name = Text(contender.name + mark + "†" * bool(contender.lossy), style=f"bold {colour}")
        cells = [COLUMNS[column](comparison, contender) for column in shown]
        cells[1:1] = [f"{score.others[other]:,.4g}" for other in others]
        _add_row(table, str(place), shown_name, Text(measure.value(score.value), style="bold"), interval, *cells)
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


def _against(comparison: Comparison, contender: Contender) -> str:
    """How far the score is from the next better one's, and whether that may be luck; "" for the best itself."""
    pair = next((pair for pair in comparison.neighbours if pair.worse == contender.name), None)
    if pair is None:
        return ""
    sign, digits = (-1, 2) if comparison.setup.is_higher_better else (1, 3)
    gap = f"{sign * pair.difference:+.{digits}f}" if pair.difference else f"{0:.{digits}f}"
    return f"{gap}, {p_text(pair.p_holm)}" + " ?" * (not pair.is_settled)


def _matrix(comparison: Comparison, group: Sequence[Contender], form: str) -> Table:
    """By how much the contender of a row is ahead of that of a column.

    In the form "names" columns have names, in "places" their places in the ranking, and in "marks" differences are
    left out too: + is settled.
    """
    heads = [c.name if form == "names" else str(place) for place, c in enumerate(group[1:], start=2)]
    table = _new_table("", "ahead of" if form == "names" else "ahead of place", *heads)
    for place, better in enumerate(group[:-1]):
        found = [comparison.pair(better.name, worse.name) for worse in group[place + 1 :]]
        cells = [write_difference(pair, comparison.setup.measure) for pair in found]
        if form == "marks":
            cells = ["" if pair is None else "+" if pair.is_settled else "?" for pair in found]
        _add_row(table, str(place + 1), better.name, *[""] * place, *cells)
    return table


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
        _add_row(table, name, *(cost_text(flops, seconds, ", ", has_time) for flops, seconds in costs))
    return table


def _new_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(Text(column), no_wrap=True)
    return table


def _add_row(table: Table, *cells: str | Text) -> None:
    """A row in which the names of users are shown as they are, on any console: rich would read [v2] as a style."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))


def notes(comparison: Comparison) -> list[str]:
    """What has to be known to read the tables."""
    setup, ranked = comparison.setup, comparison.ranked
    if not ranked:
        return []
    how = f", {setup.decoding}" if setup.decoding else ""
    lines = [f"{setup.metric} of {setup.n_tested:,} test {setup.items}{how}: {setup.signature}"]
    lines += [f"* {c.name}: {c.size_note}." for c in ranked if c.size_note]
    for group in comparison.groups:
        if group[0].lossy:
            names = join_names([c.name for c in group])
            lines.append(f"† {names}: ranked apart, since the tokenizer loses text ({group[0].lossy}).")
    sizes = [f"{c.name} {_size(c)} ({count_text(c.n_non_embedding)})" for c in ranked if c.n_non_embedding is not None]
    if sizes:
        lines.append(f"Parameters, and in brackets those that are no embeddings: {', '.join(sizes)}.")
    if setup.n_left_out:
        lines.append(f"Test items left out, since they are longer than one of the models reads: {setup.n_left_out:,}.")
    reasons = {pair.why: None for pair in comparison.pairs if pair.why}
    if reasons:
        others = [why for why in reasons if not why.startswith("p ")]
        lines.append(f"? not settled{f': {join_names(others)}' if others else ' by these test items and seeds'}.")
    if comparison.pairs:
        lines.append(f"p: {setup.test.partition(';')[0]}. {comparison.power}")
    for contender in ranked:
        if len(contender.runs) > 1:
            lines.append(
                f"{contender.name}, seed by seed: {', '.join(setup.measure.value(run.score) for run in contender.runs)}"
            )
    if comparison.costs:
        lines.append(
            "to reach: training FLOPs and time at the first evaluation on the validation data that was as good; – is "
            "never, none is no FLOPs."
        )
    limited = [(c.name, c.score.others[SAME_CONTEXT]) for c in ranked if c.score and SAME_CONTEXT in c.score.others]
    if limited:
        scores = ", ".join(f"{name} {setup.measure.value(score)}" for name, score in limited)
        lines.append(f"{SAME_CONTEXT} for all: {scores}.")
    disagreement = find_disagreement(comparison)
    return [*lines, *setup.notes, *([disagreement] if disagreement else [])]
