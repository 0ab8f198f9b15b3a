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
from regard.lens.page.palette import colour_of
from regard.systems.result import System, SystemsComparison
from regard.systems.words import flops_text, level_text

COSTS: tuple[tuple[str, Callable[[System], str]], ...] = (
    ("FLOPs", lambda s: flops_text(s.flops)),
    ("time", lambda s: duration_text(s.seconds)),
    ("params", lambda s: count_text(s.n_parameters)),
    ("tokens", lambda s: count_text(s.tokens)),
)
"""What each cost, the most telling first: a narrow terminal shows the first few."""


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
            yield _reached(self.comparison)
            yield Text()
        yield from (Text(note, style="dim") for note in notes(self.comparison))

    def _widest(self, console: Console, options: ConsoleOptions) -> Table:
        for n_costs, bar_width in ((4, 16), (4, 10), (3, 10), (2, 10), (2, 0), (1, 0)):
            table = _ranking(self.comparison, n_costs, bar_width)
            if console.measure(table, options=options.update(max_width=10_000)).maximum <= options.max_width:
                break
        return table


def _ranking(comparison: SystemsComparison, n_costs: int, bar_width: int) -> Table:
    setup, ranked = comparison.setup, comparison.ranked
    has_chrf, has_valid = any(s.chrf is not None for s in ranked), any(s.valid is not None for s in ranked)
    table = _table("", "model", setup.metric, "95% interval", "vs next better", "vs best")
    for name in (*(["chrF"] * has_chrf), *([f"valid {setup.watched}"] * has_valid), *(n for n, _ in COSTS[:n_costs])):
        table.add_column(name, justify="right", no_wrap=True)
    low, high = min(s.low for s in ranked), max(s.high for s in ranked)
    for place, system in enumerate(ranked):
        colour = colour_of(comparison.place(system.name))
        interval = Text(f"{system.low:.1f}–{system.high:.1f} ")
        interval += interval_bar((system.low, system.score, system.high), low, high, colour, bar_width)
        cells = [str(place + 1), Text(system.name, style=f"bold {colour}"), Text(f"{system.score:.2f}", style="bold")]
        row = [*cells, interval, _against(comparison, place, place - 1), _against(comparison, place, 0)]
        row += [f"{system.chrf:.2f}"] * (system.chrf is not None)
        row += ["–" if system.valid is None else valid_text(comparison, system.valid)] * has_valid
        table.add_row(*row, *(value(system) for _, value in COSTS[:n_costs]))
    return table


def valid_text(comparison: SystemsComparison, score: float) -> str:
    return f"{score:.2f}" if comparison.setup.is_watched_upwards else f"{score:.3f}"


def _against(comparison: SystemsComparison, place: int, other: int) -> str:
    """How far behind another a system is, and whether that may be luck; "" for the best itself."""
    if place == 0:
        return ""
    duel = comparison.duel(comparison.ranking[other], comparison.ranking[place])
    return f"{-duel.difference:+.2f}, {p_text(duel.p)}" + ("" if duel.is_clear else " ?")


def _reached(comparison: SystemsComparison) -> Table:
    """The FLOPs, and the time, that each needed to first have a validation score."""
    table = _table("to reach", *(s.name for s in comparison.ranked))
    for row in comparison.reached:
        cells = []
        for system in comparison.ranked:
            flops, seconds = (column[comparison.place(system.name)] for column in (row.flops, row.seconds))
            cells.append("–" if flops is None or seconds is None else f"{flops_text(flops)}, {duration_text(seconds)}")
        table.add_row(level_text(comparison.setup, row.level), *cells)
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
        lines.append(f"{setup.n_left_out:,} test items are longer than one of the models reads and were left out.")
    if any(not duel.is_clear for duel in comparison.duels):
        lines.append("? the order of these two is not settled by these test items.")
    lines.append(
        f"p: paired bootstrap over the test items, {setup.n_draws:,} draws. Each system is one run: what another seed "
        "would give is not in it."
    )
    if comparison.reached:
        lines.append(
            "to reach: training FLOPs and time at the first evaluation on the validation data that was as good."
        )
    return [*lines, *setup.notes]
