"""Files to text, a block or a line at a time, in any encoding, with errors that say where."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import RegardError, nearest
from regard.untrusted.small_files import TooManyValuesError, parse_json
from regard.untrusted.unpacking import PACKED, explain_errors, open_bytes
from regard.untrusted.values import make_printable

BLOCK = 2**20  # bytes read at a time
MAX_LINE = 100_000  # characters: a longer line is a file that lost its line ends, or no sentence
MAX_FIELDS = 100  # of a record, among which the one that was meant is looked for
MAX_FIELD = 100  # characters of a field's name in an error
COMPRESSED = PACKED
UTF8 = "utf-8"
ENCODING_DOC = "how files are encoded: utf-8, utf-16, latin-1, cp1252, gbk, shift_jis or another that Python knows"
_COMMON = ("utf-8", "utf-16", "utf-32", "latin-1", "iso-8859-1", "cp1252", "gbk", "big5", "shift_jis", "euc-kr")
_NOT_OF_FILES = ("punycode", "idna", "unicode-escape", "raw-unicode-escape", "utf-7")
"""Python's codecs for names, literals and mail. Punycode takes time with the square of a text's length."""
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class BadLine(NamedTuple):
    """What kind of fault a line has, and the rest of a sentence that begins with the line's place."""

    kind: str
    why: str


def normalize_encoding(given: str) -> str:
    """The name that Python has for an encoding of text; an error where there is none.

    >>> normalize_encoding("UTF8"), normalize_encoding("Latin-1")
    ('utf-8', 'iso8859-1')
    """
    way_out = f"Give {ENCODING_DOC.split(': ', 1)[1]}."
    try:
        found = codecs.lookup(given)
        "".encode(given)  # some codecs turn bytes into bytes: this refuses them
    except (LookupError, ValueError):
        raise RegardError(
            f"encoding '{make_printable(given, 60)}' is not known.{nearest(given, _COMMON)} {way_out}"
        ) from None
    if found.name.replace("_", "-") in _NOT_OF_FILES:
        raise RegardError(
            f"encoding '{found.name}' is for names or parts of programs, and not for files. Give that of the file: "
            f"{', '.join(_COMMON[:5])} or another."
        )
    return UTF8 if found.name == "utf-8-sig" else found.name


def read_text_blocks(path: Path, name: str, encoding: str = UTF8, *, has_crlf: bool = False) -> Iterator[str]:
    """The text of a file, plain or compressed, about 1 MB at a time; a byte order mark is dropped.

    Line ends are kept as they are, or, where `has_crlf`, each "\\r\\n" becomes "\\n". `name` is what the file is called
    in errors.
    """
    offset, n_lines, rest, is_start, held = 0, 0, b"", True, ""
    for block in read_utf8_blocks(path, name, encoding):
        data = rest + block
        text, rest = _decode(data, name, offset - len(rest), n_lines)
        offset += len(block)
        n_lines += text.count("\n")
        if is_start and text:
            text, is_start = text.removeprefix("\ufeff"), False
        if has_crlf:
            text = held + text
            held = "\r" if text.endswith("\r") else ""  # its "\n" may come with the next block
            text = text.removesuffix("\r").replace("\r\n", "\n")
        if text:
            yield text
    if rest:
        raise _not_utf8(name, rest[0], offset - len(rest), n_lines, "the file ends in the middle of a character")
    if held:
        yield held


def read_lines(path: Path, name: str, encoding: str = UTF8) -> Iterator[str | BadLine]:
    """The lines of a file, plain or compressed, without their line ends.

    Unlike `read_text_blocks`, which stops at the first broken byte, this goes on with the next line; and a line of a
    gigabyte is never held whole. `name` is what the file is called in errors.
    """
    rest, is_start = b"", True
    for block in read_utf8_blocks(path, name, encoding):
        if is_start:
            block, is_start = block.removeprefix(codecs.BOM_UTF8), False
        *whole, rest = (rest + block).split(b"\n")
        yield from map(_decode_line, whole)
        rest = rest[: 4 * MAX_LINE + 1]  # enough to see that it is too long
    if rest:
        yield _decode_line(rest)


def has_windows_line_ends(path: Path, name: str, encoding: str = UTF8) -> bool:
    """Whether every line of the first megabyte ends in "\\r\\n"; where only some do, they are left alone."""
    first = next(read_utf8_blocks(path, name, encoding), b"")
    n_lines = first.count(b"\n")
    return 0 < n_lines == first.count(b"\r\n")


def read_utf8_blocks(path: Path, name: str, encoding: str = UTF8) -> Iterator[bytes]:
    """The bytes of a file as UTF-8, about 1 MB at a time; what is UTF-8 already is passed on unchecked."""
    blocks = read_byte_blocks(path, name)
    if encoding != UTF8:
        blocks = _recode(blocks, name, encoding)
    for i, block in enumerate(blocks):
        if i == 0:
            _refuse_other_than_text(block, name, encoding)
        yield block


def _recode(blocks: Iterator[bytes], name: str, encoding: str) -> Iterator[bytes]:
    decoder, offset, pending, is_start = codecs.getincrementaldecoder(encoding)(), 0, 0, True
    try:
        for block in blocks:
            pending = len(decoder.getstate()[0])
            text = decoder.decode(block)
            offset += len(block)
            if text:
                yield text.encode().removeprefix(codecs.BOM_UTF8 if is_start else b"")
                is_start = False
        pending = len(decoder.getstate()[0])
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        start = offset - pending + (error.start if isinstance(error, UnicodeDecodeError) else 0)
        byte = f"byte 0x{error.object[error.start]:02x} " if isinstance(error, UnicodeDecodeError) else ""
        why = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
        raise RegardError(
            f"{name} is not {encoding} text: {byte}at offset {start} ({why}). Set data.encoding to the file's encoding."
        ) from None


def _decode(data: bytes, name: str, offset: int, n_lines: int) -> tuple[str, bytes]:
    """The text of `data`, which starts at `offset`, and the bytes of a last character that is not complete yet."""
    try:
        return data.decode("utf-8"), b""
    except UnicodeDecodeError as error:
        good, bad = data[: error.start], data[error.start :]
        if len(bad) < 4 and error.reason == "unexpected end of data":
            return good.decode("utf-8"), bad
        raise _not_utf8(name, bad[0], offset + error.start, n_lines + good.count(b"\n"), error.reason) from None


def _not_utf8(name: str, byte: int, offset: int, n_lines: int, reason: str) -> RegardError:
    return RegardError(
        f"{name} is not UTF-8 text: byte 0x{byte:02x} at offset {offset}, line {n_lines + 1} ({reason}). "
        "Set data.encoding to the file's encoding, latin-1 or cp1252 for example."
    )


def _decode_line(line: bytes) -> str | BadLine:
    if len(line) > 4 * MAX_LINE:  # UTF-8 has at most 4 bytes a character; what was cut off is not looked at
        return too_long(f"over {4 * MAX_LINE:,} bytes")
    try:
        text = line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        return BadLine(
            "broken UTF-8",
            f"is not UTF-8 text: byte 0x{line[error.start]:02x} at its byte {error.start + 1} ({error.reason}). "
            "Set data.encoding to the file's encoding, latin-1 or cp1252 for example.",
        )
    return too_long(f"{len(text):,} characters") if len(text) > MAX_LINE else text


def too_long(size: str) -> BadLine:
    return BadLine("too long", f"has {size}; at most {MAX_LINE:,} characters are read. Has the file lost line ends?")


def parse_record(line: str) -> dict[str, Any] | BadLine:
    """The fields of a JSON object."""
    try:
        record = parse_json(line, "", "JSONL has one JSON object a line")
    except TooManyValuesError as error:
        return BadLine("too long", str(error).lstrip())
    except RegardError as error:
        return BadLine("not JSON", str(error).lstrip().replace("is not valid JSON", "is not JSON", 1))
    if not isinstance(record, dict):
        return BadLine("not JSON", f"is a JSON {type(record).__name__}, not an object with fields.")
    return record


def pick_text(record: Mapping[str, Any], key: str, option: str) -> str | BadLine:
    """The text in a field of a record; `option` is the setting that names the field."""
    if key not in record:
        return BadLine("no field", f"{tell_missing_field(record, key)} Set {option} to one of these.")
    text = record[key]
    if not isinstance(text, str):
        return BadLine("no field", f"holds {type(text).__name__}, not text, in its field '{key}'. Set {option}.")
    return refuse_surrogates(text, f" in its field '{key}'") or text


def tell_missing_field(record: Mapping[str, Any], key: str) -> str:
    """That a record lacks a field, and which it has; of thousands only the first are compared and shown.

    >>> tell_missing_field({"text": "a dog", "id": 3}, "test")
    "has no field 'test'. Did you mean 'text'? It has: text, id."
    """
    first = [name[:MAX_FIELD] for name in islice(record, MAX_FIELDS)]
    known = make_printable(", ".join(first), 200) or "none"
    return f"has no field '{key}'.{nearest(key, first)} It has: {known}."


def refuse_surrogates(text: str, where: str = "") -> BadLine | None:
    """What is wrong with a text that JSON spells with half a surrogate pair; None of others."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        why = f"has a lone surrogate {text[error.start]!r}{where}. Write the whole character."
        return BadLine("broken UTF-8", why)
    return None


def _refuse_other_than_text(start: bytes, name: str, encoding: str) -> None:
    """An error where the first bytes of a file show that it is UTF-16 or binary."""
    if encoding == UTF8 and start.startswith(_WIDE):
        raise RegardError(f"{name} is UTF-16 text, not UTF-8. Set data.encoding to utf-16.")
    if (i := start.find(b"\0", 0, 8192)) >= 0:
        raise RegardError(
            f"{name} is a binary file, not text: it has a zero byte at offset {i}. Leave it out; in a folder, name the "
            "text files with a glob such as 'folder/**/*.txt'."
        )


def read_byte_blocks(path: Path, name: str) -> Iterator[bytes]:
    """The bytes of a file, plain or compressed, about 1 MB at a time."""
    with explain_errors(name), open_bytes(path, name, takes_pipes=True) as file:
        while block := file.read(BLOCK):
            yield block
