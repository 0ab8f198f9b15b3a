"""The folder where encoded text is kept, and how content is named in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from regard.data.cache_limit import SPOOL, YOUNG, keep_within_limit, mark_used
from regard.data.checksums import crc32_text, find_damage, sha256_of, write_checksums
from regard.data.locks import lock
from regard.errors import RegardError
from regard.files import (
    PARTIAL,
    FolderThereError,
    expand_home,
    is_old,
    remove_folder,
    write_atomically,
    write_folder_atomically,
)

LOCK = "lock"
HELD = b"held"
T = TypeVar("T")
MAX_ATTEMPTS = 3  # to fill a folder that others empty: a cache that is cleaned, a damaged entry that two have seen
SMALL = 2**20  # below this many bytes a file is hashed again rather than remembered


def cache_root() -> Path:
    """$REGARD_CACHE, or ~/.cache/regard; a new one can be read by its owner alone, since texts may be private."""
    given = os.environ.get("REGARD_CACHE")
    try:
        root = expand_home(given) if given else Path.home() / ".cache" / "regard"
    except RuntimeError:  # a container whose user has no name and no $HOME
        raise RegardError(
            "There is no home folder for the cache. Set REGARD_CACHE to a folder that is yours."
        ) from None
    with suppress(OSError):  # said by whatever cannot be written then
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root


def make_kind_folder(cache: Path, kind: str) -> Path:
    """Make the folder of the cache for one kind of entries, for its owner alone, as texts may be private.

    Where the cache is shared on purpose its owner's umask decides: where all may write to it, or a group to which all
    that is made there is given (setgid). Writing by a group alone is what many systems allow for every folder.
    """
    folder = cache / kind
    with suppress(OSError):  # said by whatever cannot be written then
        mode = cache.stat().st_mode
        is_of_group = mode & stat.S_IWGRP and mode & stat.S_ISGID
        folder.mkdir(mode=0o777 if is_of_group or mode & stat.S_IWOTH else 0o700, exist_ok=True)
    return folder


def key_of(*parts: Any) -> str:
    """32 hex digits that stand for plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def content_hash(path: Path, cache: Path) -> str:
    """SHA-256 of a file; remembered for large files that have not changed since."""
    about = path.stat()
    if about.st_size < SMALL:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    seen = [str(path.resolve()), about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]
    note = make_kind_folder(cache, "hashes") / key_of(seen)
    if (kept := open_kept_hash(note)) is not None:
        return kept
    found = sha256_of(path)
    if time.time_ns() - about.st_mtime_ns > 2_000_000_000:  # a file just written may change within the clock's tick
        write_atomically(note, f"{found} {crc32_text(found.encode())}".encode())
    return found


def open_kept_hash(note: Path) -> str | None:
    """The SHA-256 that a note in the cache remembers; None where there is none, or its own checksum does not fit."""
    try:
        found, _, checksum = note.read_bytes().partition(b" ")
    except OSError:  # not there, or removed at this moment
        return None
    return found.decode() if checksum == crc32_text(found).encode() else None


@contextmanager
def spool_folder(cache: Path) -> Iterator[Path]:
    """A folder in the cache for text on its way; gone when it is no longer needed, or at the next call if we die."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=cache, prefix=SPOOL))
    except OSError as error:
        raise _refuse_cache(cache, error) from None
    remove_abandoned(cache)
    try:
        with Held(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_cache(cache: Path, error: OSError) -> RegardError:
    return RegardError(
        f"The cache folder {cache} cannot be used: {error.strerror}. Set REGARD_CACHE to a folder that is yours."
    )


def find_or_make(folder: Path, open_folder: Callable[[Path], T | None], fill: Callable[[Path], None]) -> T:
    """What is in a folder of the cache; it is filled first where it is not there, or was damaged.

    `open_folder` gives None where a folder is not there or not whole. A folder appears whole or not at all.
    """
    remove_abandoned(folder.parent)
    for _ in range(MAX_ATTEMPTS):
        found = open_whole(folder, open_folder)
        # Folders appear whole, so one that is there and cannot be opened, twice, was damaged later.
        if found is None and _is_there(folder) and (found := open_whole(folder, open_folder)) is None:
            with suppress(FileNotFoundError):  # another process saw it too
                remove_folder(folder)
        if found is not None:
            return found
        _make(folder, fill)
        if (found := open_folder(folder)) is not None:
            keep_within_limit(folder)
            return found
    raise RegardError(f"{folder} was deleted or damaged each time just after it was written. Start again.")


def _is_there(folder: Path) -> bool:
    try:
        return folder.exists()
    except PermissionError as error:  # somebody else's cache
        raise _refuse_cache(folder.parent.parent, error) from None


def _make(folder: Path, fill: Callable[[Path], None]) -> None:
    with suppress(FolderThereError):  # another process made the same meanwhile: its folder holds what ours did
        write_folder_atomically(folder, lambda aside: _fill_held(aside, fill))


def open_whole(folder: Path, open_folder: Callable[[Path], T | None]) -> T | None:
    """What is in a folder of the cache; None where it is not there, not whole, or has changed since it was written."""
    found = open_folder(folder) if find_damage(folder) is None else None
    if found is not None:
        mark_used(folder)
    return found


def _fill_held(folder: Path, fill: Callable[[Path], None]) -> None:
    with Held(folder):
        fill(folder)
    write_checksums(folder)


def refuse_shared(files: Mapping[str, Iterable[tuple[str, object]]], what: str) -> None:
    """Refuse files that are in two splits: scores on what was trained on mean nothing.

    `files` has a name and a hash of every file, by split; `what` they hold is for the error.
    """
    seen: dict[object, tuple[str, str]] = {}
    for split, named in files.items():
        for name, digest in named:
            other, other_name = seen.setdefault(digest, (split, name))
            if other != split:
                raise RegardError(
                    f"{other_name} ({other}) and {name} ({split}) hold the same {what}. A score on what was trained on "
                    f"means nothing: give other {what} for {split}, or leave it out and a part is set aside."
                )


def be_silent(what: str, done: int, total: int | None) -> None:
    """Show no progress."""


class Held:
    """Marks a folder that is being filled, so that others can tell it from one whose writer was killed.

    The mark is a file lock, which the system takes away when the process ends, however it ends.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK

    def __enter__(self) -> None:
        self._file = open(self._path, "wb")
        lock(self._file.fileno(), is_waiting=True)
        # Only now can it be told from a folder whose writer was killed: others may lock the file before we do.
        self._file.write(HELD)
        self._file.flush()

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


def remove_abandoned(folder: Path) -> None:
    """Remove what encodes that were killed left in `folder`; those that are still at work keep theirs."""
    for path in folder.glob(f"{PARTIAL}*"):
        with suppress(OSError):  # another process removes it too
            if path.is_dir():
                if _is_abandoned(path):
                    remove_folder(path)
            elif is_old(path, YOUNG):
                path.unlink()


def _is_abandoned(folder: Path) -> bool:
    try:
        with open(folder / LOCK, "rb") as file:
            if not lock(file.fileno(), is_waiting=False):  # nothing can be locked here, and so its age must tell
                return is_old(folder)
            # Where its writer has just ended, the lock could be had because the file is no longer in the folder.
            is_left = file.read() == HELD and os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK))
            return is_left or is_old(folder, YOUNG)
    except BlockingIOError:
        return False
    except OSError:  # not locked yet, or just renamed: leave it alone while it is young
        return is_old(folder, YOUNG)
