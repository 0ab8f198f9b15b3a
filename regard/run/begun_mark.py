"""The mark in RUN/.lock by which files of a start that was killed are told from files of the user.

Before a training or an import writes anything into a folder that is no run yet, it lists in the lock file what it is
going to write there before config.yaml, without the names that are taken already (with --force). A later start removes
what is listed. Once config.yaml is there the mark is removed: from then on nothing in the folder is a leftover. A lock
file without the mark, as any program makes one, proves nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from regard.data.locks import LOCK
from regard.errors import RegardError
from regard.files import list_partial, remove_partial
from regard.tasks.run_facts import FACTS
from regard.text.tokenizer import TARGET_TOKENIZER
from regard.training.checkpoint import MODEL
from regard.untrusted.small_files import MAX_NOTE, parse_json, read_bytes

TOKENIZERS = ("tokenizer.json", TARGET_TOKENIZER)
CARD = "README.md"
BEFORE_CONFIG = (FACTS, *TOKENIZERS, MODEL, CARD)
"""What a training or an import may write before config.yaml, and so what a killed start may leave."""
_MARK = b'{"Regard begins a run here and writes": '


def mark_begun(folder: Path, names: Iterable[str]) -> None:
    """Remove what a killed start left, and list in the lock file what this one will write before config.yaml."""
    remove_leftovers(folder)
    own = [name for name in names if not os.path.lexists(folder / name)]
    with open(folder / LOCK, "wb") as file:  # not replaced, since it is this file that is locked
        file.write(_MARK + json.dumps(own).encode() + b"}\n")
        file.flush()
        os.fsync(file.fileno())


def remove_mark(folder: Path) -> None:
    """Empty the lock file: the folder is a run, and nothing in it is a leftover any more."""
    with suppress(FileNotFoundError):
        os.truncate(folder / LOCK, 0)


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
        own = parse_json(data.removeprefix(_MARK).removesuffix(b"}\n"), str(folder / LOCK))
    except RegardError:  # a power cut: nothing had been written yet
        return []
    if not isinstance(own, list):
        return []
    left = [name for name in BEFORE_CONFIG if name in own and os.path.lexists(folder / name)]
    return left + list_partial(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed start left in a folder without config.yaml."""
    left = find_leftovers(folder)
    if left:
        remove_partial(folder)
    for name in left:
        (folder / name).unlink(missing_ok=True)


def _read_lock(folder: Path) -> bytes | None:
    path = folder / LOCK
    if not os.path.lexists(path) or path.is_symlink():
        return None
    try:
        return read_bytes(path, MAX_NOTE)
    except OSError as error:
        raise RegardError(
            f"'{path}' cannot be read ({error.strerror}), and a run needs a file of this name. Move it, or choose "
            "another folder."
        ) from None
