"""Files to text, a block at a time, with errors that say where."""

from __future__ import annotations

import codecs
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError

BLOCK = 2**20  # bytes read at a time
COMPRESSED = (".gz", ".xz", ".zst")

WIDE = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def text_blocks(path: Path, name: str) -> Iterator[str]:
    """The text of a UTF-8 file, plain or compressed, about 1 MB at a time; a byte order mark is dropped.

    Line ends are kept as they are. `name` is what the file is called in errors.
    """
    offset, n_lines, rest, is_start = 0, 0, b"", True
    for block in byte_blocks(path, name):
        if offset == 0:
            refuse_other_than_text(block, name)
        data = rest + block
        text, rest = _decoded(data, name, offset - len(rest), n_lines)
        offset += len(block)
        n_lines += text.count("\n")
        if is_start and text:
            text, is_start = text.removeprefix("\ufeff"), False
        if text:
            yield text
    if rest:
        raise _not_utf8(name, rest[0], offset - len(rest), n_lines, "the file ends in the middle of a character")


def _decoded(data: bytes, name: str, offset: int, n_lines: int) -> tuple[str, bytes]:
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
        "Convert it to UTF-8, with iconv for example."
    )


def refuse_other_than_text(start: bytes, name: str) -> None:
    """An error where the first bytes of a file show that it is UTF-16 or binary."""
    wide = next((encoding for mark, encoding in WIDE.items() if start.startswith(mark)), None)
    if wide:
        raise RegardError(f"{name} is {wide} text, not UTF-8. Convert it: iconv -f {wide} -t UTF-8 {name}.")
    if (i := start.find(b"\0", 0, 8192)) >= 0:
        raise RegardError(
            f"{name} is a binary file, not text: it has a zero byte at offset {i}. Leave it out; in a folder, name the "
            "text files with a glob such as 'folder/**/*.txt'."
        )


def byte_blocks(path: Path, name: str) -> Iterator[bytes]:
    """The bytes of a file, plain or compressed, about 1 MB at a time."""
    with _explaining(name), _opened(path) as file:
        while block := file.read(BLOCK):
            yield block


def _opened(path: Path) -> Any:  # a file that gives bytes
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    if path.suffix == ".zst":
        return _open_zst(path)
    return open(path, "rb")


def _open_zst(path: Path) -> Any:
    try:
        import zstandard
    except ImportError:
        raise RegardError(f"{path} needs the package zstandard to be read: pip install zstandard.") from None
    return zstandard.open(path, "rb")


@contextmanager
def _explaining(name: str) -> Iterator[None]:
    """Broken compression and unreadable files, in one sentence."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise RegardError(f"{name} cannot be decompressed: {error}. Is it complete?") from None
    except IsADirectoryError:
        raise RegardError(f"{name} is a folder, not a file.") from None
    except PermissionError:
        raise RegardError(f"{name} cannot be read: permission denied.") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # imported only where it is needed
            raise
        raise RegardError(f"{name} cannot be decompressed: {error}. Is it complete?") from None
