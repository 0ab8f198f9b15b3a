"""Checksums of what is kept: a bit that flips on a disk changes a text or a model without a word.

A folder of the cache has `checksums.json` beside its files, with the size and the CRC-32 of each. CRC-32 finds flipped
bits and costs a seventh of a second a gigabyte; it is no protection against somebody who writes into the cache.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from regard.errors import RegardError
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


def write_checksums(folder: Path) -> None:
    """Write down size and checksum of every file in a folder that is filled."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != FILE)
    sums = {path.name: [path.stat().st_size, crc32_of(path)] for path in files}
    (folder / FILE).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")


def find_damage(folder: Path, max_bytes: int | None = MAX_CHECKED) -> str | None:
    """What is wrong with a folder, to follow its name; None: nothing, or it was written without checksums.

    Sizes are always compared, contents up to `max_bytes` of them.
    """
    if not (folder / FILE).exists():
        return None
    try:
        sums, left = read_object(folder / FILE, MAX_NOTE), max_bytes
        for name, (size, crc) in sums.items():
            path = folder / Path(name).name
            if not path.is_file() or path.stat().st_size != size:
                return f"{path.name} is missing or of another size"
            left = None if left is None else left - size
            if (left is None or left >= 0) and crc32_of(path) != crc:
                return f"{path.name} has changed since it was written"
    except (RegardError, OSError, TypeError, ValueError):
        return f"{FILE} cannot be read"
    return None
