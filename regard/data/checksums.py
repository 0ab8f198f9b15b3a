"""Checksums of what is kept: a bit that flips on a disk changes a text or a model without a word.

A folder of the cache has `checksums.json` beside its files, with the size and the CRC-32 of each. CRC-32 finds flipped
bits and costs a seventh of a second a gigabyte; it is no protection against somebody who writes into the cache. A file
by itself has its SHA-256 beside it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import write_atomically
from regard.untrusted.small_files import MAX_NOTE, open_regular, read_object

FILE = "checksums.json"
BLOCK = 2**22
MAX_CHECKED = 2**28  # bytes of a folder that are read each time it is opened; `regard cache --check` reads all


def crc32_of(path: Path) -> int:
    """The CRC-32 of a regular file."""
    found = 0
    with open_regular(path) as file:
        while block := file.read(BLOCK):
            found = zlib.crc32(block, found)
    return found


def crc32_text(data: bytes) -> str:
    """The CRC-32 of bytes as eight hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"


def crc32_of_fields(fields: Mapping[str, Any]) -> str:
    """The CRC-32 of what JSON says, however it is laid out, as eight hexadecimal digits."""
    return crc32_text(json.dumps(fields, sort_keys=True).encode())


def sha256_of(*paths: Path) -> str:
    """The SHA-256 of regular files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with open_regular(path) as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def write_checksums(folder: Path) -> None:
    """Write down size and checksum of every file in a folder that is filled."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != FILE)
    sums = {path.name: [path.stat().st_size, crc32_of(path)] for path in files}
    (folder / FILE).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")


def find_damage(folder: Path, max_bytes: int | None = MAX_CHECKED) -> str | None:
    """What is wrong with a folder, to follow its name; None: nothing, or it was written without checksums.

    Sizes are always compared, contents up to `max_bytes` of them, small files first.
    """
    try:
        if not (folder / FILE).exists():
            return None
        sums, left = read_object(folder / FILE, MAX_NOTE), max_bytes
        for name, (size, crc) in sorted(sums.items(), key=lambda item: item[1][0]):
            path = folder / Path(name).name
            if not path.is_file() or path.stat().st_size != size:
                return f"{path.name} is missing or of another size"
            if left is not None and size > left:
                continue
            left = None if left is None else left - size
            if crc32_of(path) != crc:
                return f"{path.name} has changed since it was written"
    except (RegardError, OSError, TypeError, ValueError, LookupError):
        return f"{FILE} cannot be read"
    return None


def keep_file(path: Path, data: bytes) -> None:
    """Write a file and its SHA-256 beside it; that first, so that the file is never without it."""
    write_atomically(_note_beside(path), hashlib.sha256(data).hexdigest().encode())
    write_atomically(path, data)


def is_whole(path: Path) -> bool:
    """Whether a file is there and has the SHA-256 that is beside it."""
    try:
        return sha256_of(path).encode() == _note_beside(path).read_bytes()
    except (OSError, RegardError):  # not there, or removed at this moment
        return False


def _note_beside(path: Path) -> Path:
    return path.with_suffix(".sha256")
