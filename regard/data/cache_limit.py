"""How large the cache may become, what lies in it, and what is removed first: what was not used for longest.

    cache/encoded/KEY/     token ids of a text; pair-texts/ and pairs/ those of pairs
    cache/pictures/KEY/    squares of pixels; features/KEY.safetensors what a frozen network made of them
    cache/tokenizers/, documents/, hashes/, builtin/   small things that are quickly made again; some have a
                           checksum beside them, NAME.sha256, and are removed with it
    cache/known/           which data this machine may read: never removed

A folder that is removed while another process reads it stays readable for that process: its files are mapped. A
built-in text is opened several times, and who reads one has a folder for text on its way: it stays as long as there is
such a folder.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.files import PARTIAL, remove_folder

LIMITED = ("encoded", "pair-texts", "pairs", "pictures", "features")
"""Folders whose entries are large."""
SMALL = ("tokenizers", "documents", "hashes", "builtin")
"""Folders whose entries are small; the limit does not count them."""
_KEY = r"[0-9a-f]{32}"
FORMS = {
    **dict.fromkeys(("encoded", "pair-texts", "pairs", "pictures", "hashes"), _KEY),
    "features": rf"{_KEY}\.(safetensors|crc32)",
    **dict.fromkeys(("tokenizers", "documents"), rf"{_KEY}\.json"),
    "builtin": r"(python-\w+-\d|grammar-).*\.(jsonl|txt)",
}
"""What the entries of each kind are called, as regular expressions; some have NAME.sha256 beside them. Nothing else in
the cache is ever removed: its folder may be that of other programs too."""
BUILTIN_TEXTS = "builtin"
SPOOL = f"{PARTIAL}spool-"
"""What the folders of text on its way begin with."""
VARIABLE = "REGARD_CACHE_MAX"
DEFAULT_GB = 100.0
YOUNG = 3600.0  # seconds: what was used so lately may be in use, and is never removed for lack of room
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(GB?|MB?|TB?)?", re.IGNORECASE)
_UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class CacheEntry:
    """One thing in the cache that can be made again."""

    path: Path
    n_bytes: int
    used: float
    """When it was made or last opened, as a time of the clock."""

    @property
    def kind(self) -> str:
        return self.path.parent.name


def parse_size(text: str, what: str) -> int:
    """Bytes from 20GB, 500M or, where no unit is given, a number of gigabytes.

    >>> parse_size("1.5GB", "size"), parse_size("10 M", "size")
    (1500000000, 10000000)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise RegardError(f"{what} must be a size such as 20GB or 500MB, not '{text:.40}'. A number alone is of GB.")
    return round(float(found[1]) * _UNITS[(found[2] or "G")[0].upper()])


def cache_limit() -> int:
    """How many bytes the large folders of the cache may have together: $REGARD_CACHE_MAX, or 100 GB."""
    return parse_size(os.environ.get(VARIABLE) or f"{DEFAULT_GB}GB", VARIABLE)


def list_entries(cache: Path) -> list[CacheEntry]:
    """What lies in the large folders, the least recently used first."""
    entries = []
    for kind in LIMITED:
        for path in _list_own(cache, kind):
            with suppress(OSError):  # removed meanwhile
                files = [path, *(path.iterdir() if path.is_dir() else ())]
                stats = [file.stat() for file in files]
                entries.append(CacheEntry(path, sum(s.st_size for s in stats), stats[0].st_mtime))
    return sorted(entries, key=lambda entry: (entry.used, entry.path))


def list_small(cache: Path) -> list[CacheEntry]:
    """What lies in the small folders; a built-in text is left out while somebody reads one."""
    is_read = any(cache.glob(f"{SPOOL}*"))
    entries = []
    for kind in SMALL:
        for path in () if is_read and kind == BUILTIN_TEXTS else _list_own(cache, kind):
            with suppress(OSError):  # removed meanwhile
                about = path.stat()
                entries.append(CacheEntry(path, about.st_size, about.st_mtime))
    return entries


def _list_own(cache: Path, kind: str) -> list[Path]:
    """The entries of one kind, by the form of their names: others are somebody else's, who has such a folder too."""
    return sorted(path for path in (cache / kind).glob("[!.]*") if re.fullmatch(FORMS[kind], path.name))


def mark_used(path: Path) -> None:
    """Note that an entry was opened just now."""
    with suppress(OSError):  # somebody else's cache, which may be read only
        os.utime(path)


def keep_within_limit(made: Path, limit: int | None = None) -> list[CacheEntry]:
    """Remove what was not used for longest, where the cache of the entry `made` is over its limit; never what is young.

    Returns what was removed.
    """
    limit = cache_limit() if limit is None else limit
    entries = list_entries(made.parent.parent)
    excess, removed = sum(entry.n_bytes for entry in entries) - limit, []
    for entry in entries:
        if excess <= 0:
            break
        if entry.path != made and time.time() - entry.used > YOUNG:
            remove_entry(entry)
            removed.append(entry)
            excess -= entry.n_bytes
    return removed


def remove_entry(entry: CacheEntry) -> None:
    """Remove an entry so that no half of it can be seen."""
    with suppress(FileNotFoundError):
        if entry.path.is_dir() and not entry.path.is_symlink():
            remove_folder(entry.path)
        else:
            entry.path.unlink()
            entry.path.with_suffix(".sha256").unlink(missing_ok=True)


def remove_all(cache: Path) -> int:
    """Empty the cache, but for what this machine may read and what is in use; returns the bytes that were freed.

    What other processes are writing keeps its `PARTIAL` name, and is swept once they are gone: before this is called.
    """
    n_bytes = 0
    for entry in [*list_entries(cache), *list_small(cache)]:
        with suppress(OSError):  # another process removes it too
            remove_entry(entry)
            n_bytes += entry.n_bytes
    return n_bytes
