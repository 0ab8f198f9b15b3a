"""Text to documents, in pieces small enough to hold: a file of a gigabyte is one document and a thousand pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from regard.data.reading import BadLine, parse_record, pick_text
from regard.errors import RegardError
from regard.text.units import last_cut

PIECE = 2**18  # characters a piece has at most, where there is white space to cut at
MAX_WORD = PIECE
MAX_HELD = 2**25  # characters of a line that is one document
_WORD_END = re.compile(r"(?<=\S)[\n ]")


class Piece(NamedTuple):
    """Some text, and whether its document ends with it."""

    text: str
    ends: bool


def cut_file(blocks: Iterable[str]) -> Iterator[Piece]:
    """The whole text as one document, cut where that changes no token."""
    parts: list[str] = []  # joined when there is enough to cut: blocks may be lines, and a piece has thousands
    n_characters = 0
    for block in blocks:
        parts.append(block)
        n_characters += len(block)
        if n_characters > PIECE:
            rest = "".join(parts)
            while len(rest) > PIECE and (at := _place_to_cut(rest)):
                yield Piece(rest[:at], False)
                rest = rest[at:]
            parts, n_characters = [rest], len(rest)
    if rest := "".join(parts):
        yield Piece(rest, True)


def cut_lines(blocks: Iterable[str]) -> Iterator[Piece]:
    """Each line that is not blank is a document, without its line end."""
    for line in split_lines(blocks):
        if line.strip():
            yield from cut_file([line.removesuffix("\r")])


def cut_paragraphs(blocks: Iterable[str]) -> Iterator[Piece]:
    """Documents are separated by blank lines."""
    for is_blank, lines in groupby(split_lines(blocks), key=lambda line: not line.strip()):
        if not is_blank:
            yield from cut_file(line if i == 0 else "\n" + line for i, line in enumerate(lines))


def cut_records(blocks: Iterable[str], field: str, name: str) -> Iterator[Piece]:
    """Each line is a JSON object and its `field` a document."""
    for number, line in enumerate(split_lines(blocks, name), start=1):
        if line.strip():
            record = parse_record(line)
            text = record if isinstance(record, BadLine) else pick_text(record, field, "data.field")
            if isinstance(text, BadLine):
                raise RegardError(f"{name}, line {number} {text.why}")
            if text:
                yield from cut_file([text])


def split_lines(blocks: Iterable[str], name: str = "The text") -> Iterator[str]:
    """Lines without their "\\n"; the end of the text ends a line too. One of more than MAX_HELD is an error."""
    parts: list[str] = []  # of the line that goes on
    n_characters = 0
    for block in blocks:
        first, *others = block.split("\n")
        parts.append(first)
        n_characters += len(first)
        if others:
            yield "".join(parts)
            yield from others[:-1]
            parts, n_characters = [others[-1]], len(others[-1])
        if n_characters > MAX_HELD:
            raise RegardError(
                f"{name} has a line of more than {MAX_HELD:,} characters. Has it lost its line ends? Of plain text, "
                "data.document: file reads one as a whole."
            )
    yield "".join(parts)


def _place_to_cut(text: str) -> int:
    """Before white space within the first PIECE characters, or after them; 0: wait for more text.

    Only a stretch of MAX_WORD characters with no white space is cut where its tokens may change.
    """
    if at := last_cut(text[:PIECE]):
        return at
    if found := _WORD_END.search(text, PIECE):
        return found.start()
    return MAX_WORD if len(text) > MAX_WORD else 0


def join_pieces(pieces: Iterable[Piece]) -> Iterator[str]:
    """Whole documents."""
    parts: list[str] = []
    for text, ends in pieces:
        parts.append(text)
        if ends:
            yield "".join(parts)
            parts = []


def limit_bytes(pieces: Iterable[Piece], max_bytes: int | None) -> Iterator[Piece]:
    """The first `max_bytes` bytes, cut at a line end if there is one in the last piece."""
    left = max_bytes
    for piece in pieces:
        size = len(piece.text.encode()) if left is not None else 0
        if left is None or size < left:
            yield piece
            left = None if left is None else left - size
            continue
        text = piece.text if size == left else piece.text.encode()[:left].decode("utf-8", "ignore")
        at = text.rfind("\n") + 1 if size > left else len(text)
        yield Piece(text[: at or len(text)], True)
        return
