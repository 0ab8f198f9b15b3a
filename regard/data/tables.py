"""CSV and TSV files: their rows, whether a header names the columns, and which columns are wanted.

TSV has a row a line and no quotes. CSV has quotes, in which separators and line ends may stand; its separator is the
one of , ; and tab that its first line has most of.
"""

from __future__ import annotations

import csv
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.data.reading import MAX_LINE, BadLine, read_lines
from regard.errors import RegardError, nearest

SUFFIXES = {".csv": "csv", ".tsv": "tsv"}
N_LOOKED_AT = 20  # rows from which the number of columns is told
DOUBLED = "Quotes inside of quotes are written twice."
Row = list[str] | BadLine

# What headers of files of pairs call their columns: sides, languages, the codes of languages.
_HEADERS = """
source target src tgt trg input output sentence sentence1 sentence2 text translation id split label
english german french spanish italian portuguese dutch russian chinese japanese korean arabic turkish polish
deutsch français francais español espanol italiano português nederlands русский polski
en de fr es it pt nl ru zh ja ko ar tr pl cs sv fi da el he hi ro hu uk vi
eng deu ger fra fre spa ita por nld rus zho jpn
"""
NAMES_OF_COLUMNS = frozenset(_HEADERS.split())


@dataclass(frozen=True)
class Table:
    """How the rows of one file are read: `columns` are the wanted ones, counted from 0."""

    separator: str
    has_quotes: bool
    has_header: bool
    columns: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is TSV without a header, of which the first columns are read."""
        return not self.has_quotes and not self.has_header and self.columns == tuple(range(len(self.columns)))

    def rows(self, lines: Iterable[str | BadLine]) -> Iterator[tuple[int, Row]]:
        """The wanted cells of every row under the header, or what is wrong with it, and its first line's number."""
        rows = read_rows(lines, self.separator, self.has_quotes)
        for number, row in islice(rows, int(self.has_header), None):
            yield number, row if isinstance(row, BadLine) or not row else self._pick(row)

    def _pick(self, row: list[str]) -> Row:
        if len(row) > max(self.columns):
            return [row[column] for column in self.columns]
        kind, has = ("one column",) * 2 if len(row) == 1 else ("too few columns", f"{len(row)} columns")
        wanted = " and ".join(str(column + 1) for column in self.columns)
        between = "TAB" if self.separator == "\t" else self.separator
        return BadLine(kind, f"has {has}, and {wanted} are wanted, with {between} between columns.")


def open_table(
    path: Path, name: str, form: str, encoding: str, wanted: dict[str, str], defaults: Sequence[str] = ()
) -> Table:
    """Look at the beginning of a CSV or TSV file, and find the wanted columns in it.

    `wanted` says for each setting the name of its column in the header, or its number from 1. Where these are the
    `defaults` and no header has them, the first columns are taken.
    """
    lines = list(islice(read_lines(path, name, encoding), N_LOOKED_AT))
    first = next((line for line in lines if isinstance(line, str) and line.strip()), "")
    separator = "\t" if form == "tsv" else max(",;\t", key=first.count)
    rows = [row for _, row in read_rows(lines, separator, form == "csv") if not isinstance(row, BadLine) and row]
    if max(map(len, rows), default=2) < len(wanted):
        raise RegardError(_one_column(name, form, first))
    cells = [cell.strip() for cell in rows[0]] if rows else []
    known = {column.lower() for column in cells} & NAMES_OF_COLUMNS
    has_header = set(wanted.values()) <= set(cells) or (len(known) > 1 and len(set(cells)) == len(cells))
    numbers = _find_columns(name, cells, has_header, wanted, tuple(defaults))
    return Table(separator, form == "csv", has_header, numbers)


def _find_columns(
    name: str, cells: list[str], has_header: bool, wanted: dict[str, str], defaults: tuple[str, ...]
) -> tuple[int, ...]:
    if set(wanted.values()) <= set(cells):
        return tuple(cells.index(column) for column in wanted.values())
    shown = ", ".join(cell if len(cell) <= 30 else f"{cell[:30]}..." for cell in cells)
    if tuple(wanted.values()) == defaults:
        if has_header and len(cells) > len(wanted):
            options = " and ".join(wanted)
            raise RegardError(
                f"{name} has {len(cells)} columns: {shown}. Set {options} to the names of those to read, with --set "
                f"{next(iter(wanted))}={cells[0]} for example."
            )
        if len(cells) > len(wanted):
            logging.getLogger("regard").warning(
                f"{name} has {len(cells)} columns, of which the first {len(wanted)} are read. To read others, set "
                f"{' and '.join(wanted)} to their numbers, from 1."
            )
        return tuple(range(len(wanted)))
    numbers = []
    for option, column in wanted.items():
        number = int(column) - 1 if column.isdecimal() else cells.index(column) if column in cells else -1
        if not 0 <= number < len(cells):
            raise RegardError(
                f"{name} has no column '{column}'.{nearest(column, cells)} Its first row is: {shown}. Set {option} to "
                f"the name of a column in its header, or to a number from 1 to {len(cells)}. To read a file of another "
                "form, set data.format."
            )
        numbers.append(number)
    return tuple(numbers)


def _one_column(name: str, form: str, first: str) -> str:
    if form == "tsv" and (n := max(first.count(","), first.count(";"))):
        return (
            f"{name} has no tabs, and {n + 1} columns if it is CSV: '{first[:60]}'. Set data.format to csv, or give "
            "two aligned files: [a.en, a.de]."
        )
    separators = "a tab" if form == "tsv" else "a comma, a semicolon or a tab"
    return (
        f"{name} has one column: '{first[:60]}'. A row is source and target with {separators} between them; for two "
        "aligned files give both: [a.en, a.de]."
    )


def read_rows(lines: Iterable[str | BadLine], separator: str, has_quotes: bool) -> Iterator[tuple[int, Row]]:
    """Every row, or what is wrong with it, and the number of its first line; a blank line has no cells.

    >>> list(read_rows(['a,"b', 'c"', "", 'd,"e'], ",", has_quotes=True))[:2]
    [(1, ['a', 'b\\nc']), (3, [])]
    """
    if not has_quotes:
        for number, line in enumerate(lines, start=1):
            yield number, line if isinstance(line, BadLine) else line.split(separator) if line.strip() else []
        return
    for number, text in _join_quoted(lines):
        if isinstance(text, BadLine):
            yield number, text
            continue
        try:
            yield number, next(csv.reader([text], delimiter=separator, strict=True), []) if text.strip() else []
        except csv.Error as error:
            yield number, BadLine("not CSV", f"is not CSV: {error}. {DOUBLED}")


def _join_quoted(lines: Iterable[str | BadLine]) -> Iterator[tuple[int, str | BadLine]]:
    """Lines, joined where a line end stands in quotes; where quotes are never closed, only their first line is bad."""
    rest, again = enumerate(lines, start=1), deque[tuple[int, str | BadLine]]()
    while (first := again.popleft() if again else next(rest, None)) is not None:
        number, text = first
        taken: list[tuple[int, str | BadLine]] = []
        while isinstance(text, str) and text.count('"') % 2:
            after = again.popleft() if again else next(rest, None)
            taken += [] if after is None else [after]
            if after is None or isinstance(after[1], BadLine) or len(text) > MAX_LINE:
                again.extendleft(reversed(taken))
                text = BadLine("open quote", f"opens a quote that is not closed. {DOUBLED}")
            else:
                text = f"{text}\n{after[1]}"
        yield number, text
