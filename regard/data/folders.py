"""The files below a folder of the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def walk_files(folder: Path) -> Iterator[Path]:
    """Every regular file below a folder, and links to such files, in no order.

    Links to folders are not followed: they could lead round in a circle. Links that lead nowhere, folders that may not
    be listed and what goes away meanwhile are left out. Five times as fast as `Path.rglob`, which ends in an error
    where a folder goes away.
    """
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif _is_file(entry):
                yield Path(entry.path)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file or a link to one; a link whose end may not be looked at is taken for one.

    Whoever reads it then says that it may not be read.
    """
    try:
        return entry.is_file()
    except PermissionError:
        return True
    except OSError:  # a link that leads to itself, or past a file
        return False
