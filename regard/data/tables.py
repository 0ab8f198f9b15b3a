"""CSV and TSV files: their rows, whether a header names the columns, and which columns are wanted.

TSV has a row a line and no quotes. CSV has quotes, in which separators and line ends may stand; its separator is the
one of , ; and tab that its first line has most of.
"""

from __future__ import annotations

import csv
import logging
import re
import shlex
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

# What headers of files of pairs call their columns: sides, languages, the codes of languages; and other columns.
_SIDES = """
source target src tgt trg input output
english german french spanish italian portuguese dutch russian chinese japanese korean arabic turkish polish
deutsch français francais español espanol italiano português nederlands русский polski
en de fr es it pt nl ru zh ja ko ar tr pl cs sv fi da el he hi ro hu uk vi
eng deu ger fra fre spa ita por nld rus zho jpn
"""
NAMES_OF_SIDES = frozenset(_SIDES.split())
NAMES_OF_COLUMNS = NAMES_OF_SIDES | set("sentence sentence1 sentence2 text translation id split label".split())  # noqa: SIM905
NO_SIDES = frozenset(["id", "label", "split", "title", "date", "author", "url", "name"])
_NAME = re.compile(r"[^\W\d][\w -]{0,30}")


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
    has_header = set(wanted.values()) <= set(cells) or names_columns(cells)
    numbers = _find_columns(name, rows, has_header, wanted, tuple(defaults))
    if not has_header and looks_like_header(rows):
        logging.getLogger("regard").warning(
            f"{name} begins with '{separator.join(cells)}', which is read as a pair and looks like a header. If it is "
            f"one, name its columns: --set {shlex.quote(f'{next(iter(wanted))}={cells[numbers[0]]}')} for example."
        )
    return Table(separator, form == "csv", has_header, numbers)


def names_columns(cells: Sequence[str]) -> bool:
    """Whether a first row is a header of names that are known: at least two, such as `en_text` or `Source`.

    >>> names_columns(["id", "en_text", "de_text"]), names_columns(["in", "the text"])
    (True, False)
    """
    parts = [re.split(r"[\W\d_]+", cell.lower().strip("0123456789_ ")) for cell in cells]
    n_known = sum(set(words) <= NAMES_OF_COLUMNS for words in parts)
    return n_known > 1 and len(set(cells)) == len(cells)


def may_be_pairs(cells: Sequence[str]) -> bool:
    """Whether the first row of a table is that of pairs: two sides are named, or two columns, or none is.

    >>> may_be_pairs(["id", "en", "de"]), may_be_pairs(["How are you?", "Wie geht's?"]), may_be_pairs(["id", "body"])
    (True, True, False)
    """
    names = {cell.lower() for cell in cells}
    if len(names & NAMES_OF_SIDES) > 1:
        return True
    return names.isdisjoint(NO_SIDES) and (len(cells) == 2 or not all(map(_NAME.fullmatch, cells)))


def looks_like_header(rows: Sequence[list[str]]) -> bool:
    """Whether a first row of single words stands above rows of text.

    >>> looks_like_header([["query", "answer"], ["who is there?", "it is me"]])
    True
    """
    n_words = [sum(len(cell.split()) for cell in row) / max(len(row), 1) for row in rows]
    return len(rows) > 1 and looks_like_names(rows[0]) and min(n_words[1:]) >= 2


def looks_like_names(row: Sequence[str]) -> bool:
    """Whether a row may be names of columns: each begins with a letter, is short, and is not a sentence."""
    return all(_NAME.fullmatch(cell.strip()) for cell in row)


def _find_longest(rows: Sequence[list[str]]) -> int:
    """The column with the most text in it, under the header."""
    width = len(rows[0])
    return max(range(width), key=lambda column: sum(len(row[column]) for row in rows[1:] if len(row) == width))


def _find_columns(
    name: str, rows: Sequence[list[str]], has_header: bool, wanted: dict[str, str], defaults: tuple[str, ...]
) -> tuple[int, ...]:
    cells = [cell.strip() for cell in rows[0]] if rows else []
    if set(wanted.values()) <= set(cells):
        return tuple(cells.index(column) for column in wanted.values())
    shown = ", ".join(cell if len(cell) <= 30 else f"{cell[:30]}..." for cell in cells)
    example = f"--set {shlex.quote(f'{next(iter(wanted))}={cells[_find_longest(rows)] if cells else 1}')}"
    if tuple(wanted.values()) == defaults:
        if has_header and len(cells) > len(wanted):
            raise RegardError(
                f"{name} has {len(cells)} columns: {shown}. Set {' and '.join(wanted)} to the names of those to read, "
                f"with {example} for example."
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
                f"the name of a column in its header, or to a number from 1 to {len(cells)}: {example} for example. To "
                "read a file of another form, set data.format."
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
        if not isinstance(text, str) or text.count('"') % 2 == 0:
            yield number, text
            continue
        # Every line that is taken, but for the last, has an even number of quotes: read again, none of them opens one.
        taken, size, is_open = list[tuple[int, str | BadLine]](), len(text), True
        parts = [text]
        while is_open:
            after = again.popleft() if again else next(rest, None)
            taken += [] if after is None else [after]
            if after is None or isinstance(after[1], BadLine) or size > MAX_LINE:
                break
            parts.append(after[1])
            size += 1 + len(after[1])
            is_open = after[1].count('"') % 2 == 0
        if is_open:
            again.extendleft(reversed(taken))
            yield number, BadLine("open quote", f"opens a quote that is not closed. {DOUBLED}")
        else:
            yield number, "\n".join(parts)
