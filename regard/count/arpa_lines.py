"""The lines of an ARPA file and their syntax: markers, promised sizes, numbers and words, each error with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from regard.count.arpa import LOG10_ZERO
from regard.count.arrays import Floats
from regard.errors import RegardError

BLOCK = 1 << 14  # lines parsed at a time
_SIZE = re.compile(rb"ngram\s+(\d+)\s*=\s*(\d+)")


class Lines:
    """The lines of a file, counted."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file, self.n_read = path, file, 0

    def take(self, n: int) -> list[bytes]:
        taken = list(islice(self.file, n))
        self.n_read += len(taken)
        return taken

    def take_one(self, wanted: str) -> bytes:
        """The next line, without the white space around it; the end of the file is an error."""
        taken = self.take(1)
        if not taken:
            self.refuse(self.n_read, f"the file ends here, before {wanted}")
        return taken[0].strip()

    def expect(self, marker: str, otherwise: str) -> None:
        """Pass empty lines and then `marker`."""
        while (line := self.take_one(f"'{marker}'")) != marker.encode():
            if line:
                self.refuse(self.n_read, f"expected '{marker}', found {show(line)}: {otherwise}")

    def refuse(self, number: int, why: str) -> NoReturn:
        raise RegardError(f"{self.path}, line {number}: {why}. Write or fetch this ARPA file again.")


def show(text: bytes) -> str:
    return repr(text.decode(errors="replace")[:60])


def read_sizes(lines: Lines) -> list[int]:
    r"""How many n-grams of each order are promised, up to the marker of the 1-grams; `\data\` may follow a comment."""
    while lines.take_one("'\\data\\'") != b"\\data\\":
        pass
    sizes: list[int] = []
    while (line := lines.take_one("'\\1-grams:'")) != b"\\1-grams:":
        size = _SIZE.fullmatch(line)
        if size and int(size[1]) == len(sizes) + 1:
            sizes.append(int(size[2]))
        elif line:
            lines.refuse(lines.n_read, f"expected 'ngram {len(sizes) + 1}=COUNT', found {show(line)}")
    if not sizes:
        lines.refuse(lines.n_read, "expected 'ngram 1=COUNT' before the 1-grams, found nothing")
    return sizes


@dataclass(frozen=True)
class Block:
    """Some lines of one order, by column."""

    first_line: int
    log_probs: Floats  # nats
    words: list[tuple[bytes, ...]]  # n columns
    log_backoffs: Floats  # nats


def read_blocks(lines: Lines, n: int, size: int, order: int) -> Iterator[Block]:
    """The `size` n-grams of order n, a block at a time."""
    while size:
        first_line = lines.n_read + 1
        rows = [line.split() for line in lines.take(min(size, BLOCK))]
        lengths = set(map(len, rows))
        allowed = {n + 1} if n == order else {n + 1, n + 2}
        if not rows or not lengths <= allowed:
            _refuse_rows(lines, first_line, rows, n, size, allowed)
        if n + 1 in lengths:
            rows = [row if len(row) == n + 2 else [*row, b"0"] for row in rows]
        log_probs, *words, log_backoffs = zip(*rows, strict=True)
        block = Block(first_line, _nats(lines, first_line, log_probs), words, _nats(lines, first_line, log_backoffs))
        if block.log_probs.max() > 0:
            at = int(np.argmax(block.log_probs > 0))
            lines.refuse(first_line + at, f"a log probability is at most 0, not {show(log_probs[at])}")
        yield block
        size -= len(rows)


def _refuse_rows(
    lines: Lines, first_line: int, rows: list[list[bytes]], n: int, size: int, allowed: set[int]
) -> NoReturn:
    bad, row = next(((i, row) for i, row in enumerate(rows) if len(row) not in allowed), (len(rows), None))
    if row is None:
        lines.refuse(lines.n_read, f"the file ends here, {size - bad} {n}-grams before all that \\data\\ promises")
    if not row or row[0].startswith(b"\\"):
        lines.refuse(first_line + bad, f"the {n}-grams end here, {size - bad} before all that \\data\\ promises")
    wanted = f"a number, {n} words" + (" and perhaps a number" if n + 2 in allowed else "")
    lines.refuse(first_line + bad, f"expected {wanted}, found {show(b' '.join(row))}")


def _nats(lines: Lines, first_line: int, column: Sequence[bytes]) -> Floats:
    """Decimal logarithms as natural ones; -99 and below mean the logarithm of zero."""
    try:
        log10 = np.array(list(map(float, column)))
    except ValueError:
        lines.refuse(*_first_bad(first_line, column, float))
    if not np.all(log10 < np.inf):  # NaN compares false too
        at = int(np.argmin(log10 < np.inf))
        lines.refuse(first_line + at, f"{show(column[at])} is no finite number")
    return np.where(log10 <= LOG10_ZERO, -np.inf, log10 * np.log(10))


def _first_bad(first_line: int, column: Sequence[bytes], parse: Callable[[bytes], float]) -> tuple[int, str]:
    for number, text in enumerate(column, start=first_line):
        try:
            parse(text)
        except ValueError:
            return number, f"{show(text)} is no number"
    raise AssertionError("every field parsed")
