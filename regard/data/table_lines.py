"""Lines of a table that are asked about: the header is none of them, and of its columns only the texts are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from regard.data.labelled import LABEL_NAMES, TEXT_NAMES
from regard.data.reading import BadLine
from regard.data.tables import looks_like_names, read_rows
from regard.errors import RegardError

OTHER_NAMES = ("sentence2", "question", "passage", "context", "id")


def find_columns(first: str, form: str, texts: tuple[str | None, ...]) -> tuple[str, tuple[int, ...]] | None:
    """The separator and the columns of the texts, from 0, where the first line of a table is a header; else None.

    `texts` are the names or numbers of the columns that a run was trained on, None for those that usually are. A first
    line is a header where it has those names, or, of names alone, one that is known.

    >>> find_columns("text\\tlabel", "tsv", (None,)), find_columns("A good film.\\tpos", "tsv", (None,))
    (('\\t', (0,)), None)
    >>> find_columns("id,sentence1,sentence2", "csv", (None, "sentence2"))
    (',', (1, 2))
    """
    separator = "\t" if form == "tsv" else max(",;\t", key=first.count)
    row = next(read_rows([first], separator, form == "csv"), (1, []))[1]
    cells = [] if isinstance(row, BadLine) else [cell.strip() for cell in row]
    named = [name for name in texts if name is not None and not name.isdecimal()]
    known = {cell.lower() for cell in cells} & {*TEXT_NAMES, *LABEL_NAMES, *OTHER_NAMES}
    is_named = bool(named) and set(named) <= set(cells)
    if not is_named and not (known and looks_like_names(cells)):
        return None
    usual = (TEXT_NAMES, ()) if len(texts) == 1 else ((*TEXT_NAMES, "question"), ("sentence2", "passage", "context"))
    lower = [cell.lower() for cell in cells]
    found = []
    for place, (name, names) in enumerate(zip(texts, usual, strict=False)):
        likely = next((lower.index(each) for each in names if each in lower), place)
        asked = likely if name is None else cells.index(name) if name in cells else likely
        found.append(int(name) - 1 if name is not None and name not in cells and name.isdecimal() else asked)
    return (separator, tuple(found)) if max(found) < len(cells) else None


def read_table_lines(
    lines: Iterable[str], form: str, texts: tuple[str | None, ...], skips_bad: bool = False
) -> Iterator[str | None]:
    """The texts of every row of a table, two with a tab between them; an empty line in place of the header.

    Lines of a table without a header are given as they are. A row that cannot be read, or lacks a column of a text, is
    an error, or None with `skips_bad`.
    """
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return
    found = find_columns(first, form, texts)
    if found is None:
        yield first
        yield from rest
        return
    separator, columns = found
    yield ""
    for number, line in enumerate(rest, start=2):
        row = next(read_rows([line], separator, form == "csv"), (1, []))[1]
        is_short = not isinstance(row, BadLine) and 0 < len(row) <= max(columns)
        if skips_bad and (is_short or isinstance(row, BadLine)):
            yield None
            continue
        if isinstance(row, BadLine):
            raise RegardError(f"Line {number} {row.why} To leave out such lines: --skip-bad.")
        if is_short:
            raise RegardError(
                f"Line {number} has {len(row)} column{'s' * (len(row) != 1)}, and column {max(columns) + 1} of the "
                "header is wanted. Mend the line, give the texts without a header, or leave such lines out: --skip-bad."
            )
        yield "\t".join(row[column].replace("\t", " ") for column in columns) if row else ""
