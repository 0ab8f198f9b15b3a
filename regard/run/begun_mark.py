"""The mark in RUN/.lock by which files of a start that was killed are told from files of the user.

Before a training or an import writes anything into a folder that is no run yet, it writes into the lock file which of
the names that it is going to use were taken already (with --force). A later start removes the others: they are its own.
A lock file without the mark, as any program makes one, proves nothing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from regard.errors import RegardError
from regard.files import PARTIAL, remove_partial
from regard.text.tokenizer import TARGET_TOKENIZER
from regard.training.checkpoint import MODEL
from regard.untrusted.small_files import MAX_NOTE, read_bytes

LOCK = ".lock"
TOKENIZERS = ("tokenizer.json", TARGET_TOKENIZER)
BEFORE_CONFIG = ("run.json", *TOKENIZERS, MODEL, "README.md")
"""What is written before config.yaml, and so what a killed start may leave."""
_MARK = b'{"Regard begins a run here, where others had": '


def mark_begun(folder: Path) -> None:
    """Remove what a killed start left, and write into the lock file which names are taken by files of others."""
    remove_leftovers(folder)
    taken = [name for name in BEFORE_CONFIG if os.path.lexists(folder / name)]
    with open(folder / LOCK, "wb") as file:  # not replaced, since it is this file that is locked
        file.write(_MARK + json.dumps(taken).encode() + b"}\n")
        file.flush()
        os.fsync(file.fileno())


def check_lock(folder: Path) -> None:
    """Refuse a lock file of another program that says something: it would be lost."""
    data = _read_lock(folder)
    # One that a power cut kept from being whole was written before everything else.
    if data is None or data.startswith(_MARK) or _MARK.startswith(data) or not data.strip(b"\0"):
        return
    raise RegardError(
        f"'{folder / LOCK}' was written by another program, and a run needs a file of this name. Move it, or choose "
        "another folder."
    )


def is_marked(folder: Path) -> bool:
    """Whether the lock file was marked by a start."""
    return (_read_lock(folder) or b"").startswith(_MARK)


def find_leftovers(folder: Path) -> list[str]:
    """The names in a folder without config.yaml that a start left which was killed; none where nothing proves it."""
    data = _read_lock(folder)
    if data is None or not data.startswith(_MARK):
        return []
    try:
        taken = json.loads(data.removeprefix(_MARK).removesuffix(b"}\n"))
    except ValueError:  # a power cut: nothing had been written yet
        return []
    if not isinstance(taken, list):
        return []
    left = [name for name in BEFORE_CONFIG if name not in taken and os.path.lexists(folder / name)]
    return left + sorted(path.name for path in folder.glob(f"{PARTIAL}*"))


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed start left in a folder without config.yaml."""
    for name in find_leftovers(folder):
        if not name.startswith(PARTIAL):
            (folder / name).unlink(missing_ok=True)
        else:
            remove_partial(folder)


def _read_lock(folder: Path) -> bytes | None:
    path = folder / LOCK
    return read_bytes(path, MAX_NOTE) if os.path.lexists(path) and not path.is_symlink() else None
