"""The lines of an ARPA file and their syntax: markers, promised sizes, numbers and words, each error with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from regard.count.arpa import LOG10_ZERO
from regard.count.arrays import Floats, Index
from regard.errors import RegardError

BLOCK = 1 << 12  # lines parsed at a time
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
    return f"'{' '.join(text.decode(errors='replace').split())[:60]}'"


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
    words: list[list[bytes]]  # n columns
    log_backoffs: Floats  # nats


def read_blocks(lines: Lines, n: int, size: int, order: int) -> Iterator[Block]:
    """The `size` n-grams of order n, a block at a time."""
    widths_allowed = [n + 1] if n == order else [n + 1, n + 2]
    while size:
        first_line = lines.n_read + 1
        taken = lines.take(min(size, BLOCK))
        fields, firsts, widths = _split(taken)
        is_bad = ~np.isin(widths, widths_allowed)
        if not taken or is_bad.any():
            at = int(np.argmax(is_bad)) if taken else 0
            _refuse_line(lines, first_line + at, taken[at : at + 1], n, size - at, widths_allowed)
        log_probs = fields[firsts].tolist()
        words = [fields[firsts + column].tolist() for column in range(1, n + 1)]
        log_backoffs = np.full(len(taken), b"0", object)
        log_backoffs[widths == n + 2] = fields[(firsts + n + 1)[widths == n + 2]]
        yield Block(
            first_line,
            _nats(lines, first_line, log_probs, at_most=0.0),
            words,
            _nats(lines, first_line, log_backoffs.tolist(), at_most=np.inf),
        )
        size -= len(taken)


def _split(taken: list[bytes]) -> tuple[npt.NDArray[np.object_], Index, Index]:
    """All fields, the index of each line's first field, and how many fields each line has.

    One split for the whole block and a count by numpy; a split a line took twice as long.
    """
    text = b"".join(taken)
    characters = np.frombuffer(text, np.uint8)
    is_field = (characters != ord(" ")) & (
        (characters < ord("\t")) | (characters > ord("\r"))
    )  # what split() splits at
    is_field[1:] &= ~is_field[:-1]  # only where a field begins
    line_ends = np.cumsum([0, *map(len, taken)])
    widths = np.add.reduceat(is_field, line_ends[:-1], dtype=np.int64) if taken else np.zeros(0, np.int64)
    return np.array(text.split(), object), np.cumsum(widths) - widths, widths


def _refuse_line(lines: Lines, number: int, line: list[bytes], n: int, n_missing: int, allowed: list[int]) -> NoReturn:
    missing = f"{n_missing} {n}-grams before all that \\data\\ promises"
    if not line:
        lines.refuse(lines.n_read, f"the file ends here, {missing}")
    if not line[0].strip() or line[0].startswith(b"\\"):
        lines.refuse(number, f"the {n}-grams end here, {missing}")
    wanted = f"a number, {n} words" + (" and perhaps a number" if n + 2 in allowed else "")
    lines.refuse(number, f"expected {wanted}, found {show(line[0].strip())}")


def _nats(lines: Lines, first_line: int, column: list[bytes], at_most: float) -> Floats:
    """Decimal logarithms as natural ones; -99 and below mean the logarithm of zero."""
    try:
        log10 = np.array(list(map(float, column)))
    except ValueError:
        at = next(i for i, text in enumerate(column) if not _is_number(text))
        lines.refuse(first_line + at, f"{show(column[at])} is no number")
    if not np.all(log10 <= at_most) or np.isposinf(log10).any():  # NaN compares false
        at = int(np.argmin((log10 <= at_most) & (log10 < np.inf)))
        lines.refuse(first_line + at, f"{show(column[at])} is no logarithm of a probability or back-off weight")
    return np.where(log10 <= LOG10_ZERO, -np.inf, log10 * np.log(10))


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
