"""The ranking of systems, and what scores cost them, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from regard.comparison.budget import count_text, duration_text
from regard.comparison.table import interval_bar
from regard.comparison.words import p_text
from regard.report.palette import colour_of
from regard.systems.result import LOSS, SystemsComparison
from regard.systems.words import cost_text, flops_text, level_text, seeds_text

Value = Callable[[SystemsComparison, int], str]
"""A cell of the system at a place of the ranking."""

COLUMNS: dict[str, Value] = {
    "vs next better": lambda c, place: _against(c, place, place - 1),
    "vs best": lambda c, place: _against(c, place, 0),
    "chrF": lambda c, place: "–" if (chrf := c.ranked[place].chrf) is None else f"{chrf:.2f}",
    "valid": lambda c, place: "–" if (valid := c.ranked[place].valid) is None else valid_text(c, valid),
    "FLOPs": lambda c, place: flops_text(c.ranked[place].flops),
    "time": lambda c, place: duration_text(c.ranked[place].seconds),
    "params": lambda c, place: count_text(c.ranked[place].n_parameters),
    "tokens": lambda c, place: count_text(c.ranked[place].tokens),
}
GIVEN_UP = ("tokens", "params", "valid", "vs best", "chrF", "time", "FLOPs")
"""What a narrow terminal does without, one after the other."""
BARS = (16, 10, 0)
"""Widths of the bar that draws an interval; the narrower ones go before any column does."""


@dataclass(frozen=True)
class SystemsTable:
    """Drawn when the width is known: best first, with as many columns as there is room for."""

    comparison: SystemsComparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(" ".join(self.comparison.headline), style="bold")
        yield Text()
        yield self._widest(console, options)
        yield Text()
        if self.comparison.reached:
            yield _first_that_fits([_reached(self.comparison, has) for has in (True, False)], console, options)
            yield Text()
        yield from (Text(note, style="dim") for note in notes(self.comparison))

    def _widest(self, console: Console, options: ConsoleOptions) -> Table:
        columns = [name for name in COLUMNS if self._is_told(name)]
        tables = [_ranking(self.comparison, columns, width) for width in BARS]
        for name in GIVEN_UP:
            columns = [column for column in columns if column != name]
            tables.append(_ranking(self.comparison, columns, 0))
        return _first_that_fits(tables, console, options)

    def _is_told(self, column: str) -> bool:
        """Whether a column says anything that others do not."""
        systems = self.comparison.systems
        if column == "vs best":
            return len(systems) > 2
        return column not in ("chrF", "valid") or any(getattr(s, column.lower()) is not None for s in systems)


def _first_that_fits(tables: list[Table], console: Console, options: ConsoleOptions) -> Table:
    """The first table that the terminal has room for, or the last."""
    endless = options.update(max_width=10_000)
    fitting = (t for t in tables if console.measure(t, options=endless).maximum <= options.max_width)
    return next(fitting, tables[-1])


def _ranking(comparison: SystemsComparison, columns: list[str], bar_width: int) -> Table:
    setup, ranked = comparison.setup, comparison.ranked
    watched = {LOSS: "bits/byte"}.get(setup.watched, setup.watched)
    table = _table("", "model", setup.metric, "95% interval")
    for name in columns:
        table.add_column(f"valid {watched}" if name == "valid" else name, justify="right", no_wrap=True)
    low, high = min(s.low for s in ranked), max(s.high for s in ranked)
    for place, system in enumerate(ranked):
        colour = colour_of(comparison.place(system.name))
        interval = Text(f"{system.low:.1f}–{system.high:.1f} ")
        interval += interval_bar((system.low, system.score, system.high), low, high, colour, bar_width)
        shown, score = Text(system.name, style=f"bold {colour}"), Text(f"{system.score:.2f}", style="bold")
        cells = (COLUMNS[column](comparison, place) for column in columns)
        table.add_row(str(place + 1), shown, score, interval, *cells)
    return table


def valid_text(comparison: SystemsComparison, score: float) -> str:
    return f"{score:.2f}" if comparison.setup.is_watched_upwards else f"{score:.3f}"


def _against(comparison: SystemsComparison, place: int, other: int) -> str:
    """How far behind another a system is, and whether that may be luck; "" for the best itself."""
    if place == 0:
        return ""
    duel = comparison.duel(comparison.ranking[other], comparison.ranking[place])
    return f"{-duel.difference:+.2f}, {p_text(duel.p)}" + ("" if duel.is_clear else " ?")


def _reached(comparison: SystemsComparison, has_time: bool) -> Table:
    """The FLOPs, and the time, that each needed to first have a validation score."""
    table = _table("to reach", *(level_text(comparison.setup, row.level) for row in comparison.reached))
    for name in comparison.ranking:
        place = comparison.place(name)
        costs = ((row.flops[place], row.seconds[place]) for row in comparison.reached)
        table.add_row(name, *(cost_text(flops, seconds, ", ", has_time) for flops, seconds in costs))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def notes(comparison: SystemsComparison) -> list[str]:
    """What has to be known to read the tables."""
    setup = comparison.setup
    lines = [f"{setup.metric} of {setup.n_tested:,} test items, {setup.decoding}: {setup.signature}"]
    if setup.n_left_out:
        lines.append(f"Test items left out, since they are longer than one of the models reads: {setup.n_left_out:,}.")
    if any(not duel.is_clear for duel in comparison.duels):
        lines.append("? the order of these two is not settled by these test items.")
    lines.append(f"p: paired bootstrap over the test items, {setup.n_draws:,} draws. {seeds_text(comparison)}")
    for system in comparison.ranked:
        if len(system.runs) > 1:
            lines.append(f"{system.name}: {', '.join(f'{score:.2f}' for score in system.scores)}")
    if comparison.reached:
        lines.append(
            "to reach: training FLOPs and time at the first evaluation on the validation data that was as good."
        )
    return [*lines, *setup.notes]
