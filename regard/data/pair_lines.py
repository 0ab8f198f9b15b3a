"""Lines that can be used, and lines that cannot: a bad one is given back with its reason, and reading can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.reading import byte_blocks, refuse_other_than_text
from regard.errors import nearest

MAX_LINE = 100_000  # characters: a longer line is a file that lost its line ends, or no sentence
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BadLine(NamedTuple):
    """What kind of fault a line has, and the rest of a sentence that begins with the line's place."""

    kind: str
    why: str


class TextPair(NamedTuple):
    """Both sides of a pair; of a tree with slots for words, also the tag of every word, with spaces between them."""

    source: str
    target: str
    word_tags: str = ""


def read_lines(path: Path, name: str) -> Iterator[str | BadLine]:
    """The lines of a UTF-8 file, plain or compressed, without their line ends.

    Unlike `text_blocks`, which stops at the first broken byte, this goes on with the next line; and a line of a
    gigabyte is never held whole. `name` is what the file is called in errors.
    """
    rest, is_start = b"", True
    for block in byte_blocks(path, name):
        if is_start:
            refuse_other_than_text(block, name)
            block, is_start = block.removeprefix(BYTE_ORDER_MARK), False
        *whole, rest = (rest + block).split(b"\n")
        yield from map(_decoded, whole)
        rest = rest[: 4 * MAX_LINE + 1]  # enough to see that it is too long
    if rest:
        yield _decoded(rest)


def _decoded(line: bytes) -> str | BadLine:
    if len(line) > 4 * MAX_LINE:  # UTF-8 has at most 4 bytes a character; what was cut off is not looked at
        return _too_long(f"over {4 * MAX_LINE:,} bytes")
    try:
        text = line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        return BadLine(
            "broken UTF-8",
            f"is not UTF-8 text: byte 0x{line[error.start]:02x} at its byte {error.start + 1} ({error.reason}). "
            "Convert the file to UTF-8, with iconv for example.",
        )
    return _too_long(f"{len(text):,} characters") if len(text) > MAX_LINE else text


def _too_long(size: str) -> BadLine:
    return BadLine("too long", f"has {size}; at most {MAX_LINE:,} characters are read. Has the file lost line ends?")


def checked_sides(pair: TextPair) -> TextPair | BadLine:
    """A pair without the white space around its sides, if there is something in each."""
    source, target = pair.source.strip(), pair.target.strip()
    if source and target:
        return pair._replace(source=source, target=target)
    which = "is empty" if not (source or target) else f"has an empty {'target' if source else 'source'}"
    return BadLine("empty side", f"{which}. Every pair needs a source and a target.")


def columns(line: str) -> TextPair | BadLine:
    """The first two columns of a TSV line.

    >>> columns("Go.\\tGeh.\\tCC-BY 2.0")
    TextPair(source='Go.', target='Geh.', word_tags='')
    """
    source, *others = line.split("\t")
    if not others:
        return BadLine(
            "one column", "has one column. TSV is source TAB target; for two aligned files give both: [a.en, a.de]."
        )
    return TextPair(source, others[0])


def json_object(line: str) -> dict[str, Any] | BadLine:
    """The fields of a record."""
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        return BadLine("not JSON", f"is not JSON: {error}. JSONL has one JSON object a line.")
    if not isinstance(record, dict):
        return BadLine("not JSON", f"is a JSON {type(record).__name__}, not an object with fields.")
    return record


def fields(line: str, source_field: str, target_field: str) -> TextPair | BadLine:
    """The two texts of a JSON record; line ends inside them are read as spaces, since an output is one line."""
    record = json_object(line)
    if isinstance(record, BadLine):
        return record
    found = []
    for key, option in ((source_field, "data.source_field"), (target_field, "data.target_field")):
        if key not in record:
            known = ", ".join(record) or "none"
            return BadLine("no field", f"has no field '{key}'.{nearest(key, record)} It has: {known}. Set {option}.")
        text = record[key]
        if not isinstance(text, str):
            return BadLine("no field", f"holds {type(text).__name__}, not text, in its field '{key}'. Set {option}.")
        try:
            text.encode()
        except UnicodeEncodeError as error:  # JSON can spell half a surrogate pair
            return BadLine("broken UTF-8", f"has a lone surrogate {text[error.start]!r} in its field '{key}'.")
        if len(text) > MAX_LINE:
            return _too_long(f"{len(text):,} characters in its field '{key}'")
        found.append(" ".join(text.splitlines()))
    return TextPair(found[0], found[1])
