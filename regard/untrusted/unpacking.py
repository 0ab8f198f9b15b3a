"""Files of text, packed or not, as bytes: what unpacks without end, or has a line without end, is refused on the way.

Eighty kilobytes can unpack to ten gigabytes, so what comes out is held against what went in.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from regard.errors import RegardError
from regard.untrusted.small_files import open_regular

PACKED = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ", ".zst": b"(\xb5/\xfd"}
"""The first bytes of files whose names end so."""
MAX_RATIO = 200  # text packs to a third or a tenth
FREE_BYTES = 2**28  # that may come out of a file however small it is
BUFFER = 2**16


def open_bytes(
    path: Path, name: str, max_line: int | None = None, *, by_content: bool = False, takes_pipes: bool = False
) -> BinaryIO:
    """Open a regular file for reading, unpacked where its name ends in .gz, .xz or .zst.

    `name` is what errors call it. Where `max_line` is given, a line of more bytes is an error. `by_content` tells gzip
    from plain bytes by its first two. `takes_pipes` is for a path that a user typed: what a shell makes of <(command).
    """
    with explain_errors(name):
        is_pipe = takes_pipes and path.is_fifo()
        raw = cast(BinaryIO, open(path, "rb")) if is_pipe else open_regular(path)  # noqa: SIM115 (the caller closes it)
        suffix = path.suffix
        if by_content:
            suffix = ".gz" if raw.read(2) == PACKED[".gz"] else ""
            raw.seek(0)
        if suffix not in PACKED and max_line is None:
            return raw
        try:
            return cast(BinaryIO, io.BufferedReader(_Watched(raw, suffix, name, max_line), BUFFER))
        except BaseException:
            raw.close()
            raise


def _unpack(raw: BinaryIO, suffix: str, name: str) -> Any:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if suffix == ".xz":
        return lzma.LZMAFile(raw)
    if suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise RegardError(f"{name} needs the package zstandard to be read: pip install zstandard.") from None
        # A window larger than this is for archives of gigabytes, and is memory that a small file can ask for.
        return zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(raw, read_across_frames=True)
    return raw


class _Watched(io.RawIOBase):
    """Bytes of a file, counted on their way."""

    def __init__(self, raw: BinaryIO, suffix: str, name: str, max_line: int | None) -> None:
        self._raw, self._name, self._max_line = raw, name, max_line
        # Looked at, and not read: a pipe cannot be read again.
        self._is_other = suffix in PACKED and not cast(io.BufferedReader, raw).peek(5).startswith(PACKED[suffix])
        self._unpacked = unpacked = _unpack(raw, suffix, name)
        self._allowed = max(FREE_BYTES, MAX_RATIO * os.fstat(raw.fileno()).st_size) if unpacked is not raw else None
        self._n_read = self._n_in_line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with explain_errors(self._name, self._is_other):
            data = self._unpacked.read(len(buffer))
        buffer[: len(data)] = data
        self._n_read += len(data)
        if self._allowed is not None and self._n_read > self._allowed:
            raise RegardError(
                f"{self._name} unpacks to more than {self._allowed // 2**20:,} MB, {MAX_RATIO} times its size and more,"
                " as no text does. If it is what you want, unpack it first and give the plain file."
            )
        if self._max_line is not None:
            end = data.rfind(b"\n")
            self._n_in_line = self._n_in_line + len(data) if end < 0 else len(data) - end - 1
            if self._n_in_line > self._max_line:
                raise RegardError(
                    f"{self._name} has a line of more than {self._max_line:,} bytes. Has it lost its line ends?"
                )
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._unpacked.close()
            self._raw.close()
        super().close()


@contextmanager
def explain_errors(name: str, is_other: bool = False) -> Iterator[None]:
    """Broken compression and files that cannot be read, in one sentence that begins with `name`.

    `is_other` says that a file begins as none does that is packed in the way that its name says.
    """
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise _explain(name, error, is_other) from None
    except IsADirectoryError:
        raise RegardError(f"{name} is a folder, not a file.") from None
    except PermissionError:
        raise RegardError(f"{name} cannot be read: permission denied.") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # imported only where it is needed
            raise
        raise _explain(name, error, is_other) from None


def _explain(name: str, error: Exception, is_other: bool) -> RegardError:
    if is_other:
        return RegardError(f"{name} is not packed in the way that its name says. Unpack it, or give it its right name.")
    return RegardError(f"{name} cannot be decompressed: {error}. Is it complete?")
