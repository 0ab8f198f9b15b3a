"""The folder that a page is drawn into: one that holds files of somebody else is left alone.

A page says that Regard made it, and by that a folder is known again; its last line lists the files beside it that were
drawn with it, and only these are written over. So there is a page from the beginning, one that says that it is not
finished: a command that was killed may draw into its folder once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from regard.errors import RegardError
from regard.files import PARTIAL, make_folder, write_atomically
from regard.untrusted.small_files import read_bytes

MADE = "Made by Regard"
MAX_PAGE = 2**28  # bytes
BEGUN = f"<!DOCTYPE html><meta charset=utf-8><p>{MADE}. This page is not finished: start its command again."
LISTED = re.compile(rb"\n<!-- Drawn beside this page: (\[[^<>]*\]) -->\s*\Z")


def check_page_folder(folder: Path, page: str = "index.html", force: bool = False, files: Collection[str] = ()) -> None:
    """Refuse a folder with files and no page of ours, or with one of `files` that its page does not list.

    `force` asks for it nevertheless.
    """
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"'{folder}' is a file; --out (in Python: save) takes a folder to write into.")
    if (folder / "run.json").exists():
        raise RegardError(f"'{folder}' is a run, and nothing else is drawn into it. Choose another folder.")
    if force or not folder.is_dir():
        return
    held = sorted(path.name for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    others = find_others(folder, page, files) if is_our_page(folder / page) else held
    if others:
        raise RegardError(
            f"'{folder}' holds files that Regard did not draw ({others[0]}). Choose another folder, or add --force (in "
            "Python: force=True) to draw into this one."
        )


def begin_page(folder: Path, page: str = "index.html", force: bool = False, files: Collection[str] = ()) -> None:
    """Check a folder that is to be drawn into, and have a page there that lists `files`, before they are drawn."""
    check_page_folder(folder, page, force, files)
    make_folder(folder)
    path = folder / page
    if not path.exists():
        write_atomically(path, BEGUN + _list_files(files))
    elif is_our_page(path) and not set(files) <= set(listed := read_listed(path)):
        text = LISTED.sub(b"", read_bytes(path, MAX_PAGE))  # the page of an earlier command, until the new one is whole
        write_atomically(path, text + _list_files({*listed, *files}).encode())


def finish_page(folder: Path, text: str, page: str = "index.html", files: Collection[str] = ()) -> Path:
    """Write a page that was begun, after the `files` beside it; what was drawn before and is there stays listed."""
    before = read_listed(folder / page)
    kept = {name for name in (*before, *files) if (folder / name).exists()}
    write_atomically(folder / page, text + _list_files(kept))
    return folder / page


def is_our_page(path: Path) -> bool:
    """Whether a file is a page that Regard drew."""
    return path.is_file() and path.stat().st_size <= MAX_PAGE and MADE.encode() in path.read_bytes()


def is_begun(path: Path) -> bool:
    """Whether a file is a page that a command began and did not finish."""
    return is_our_page(path) and read_bytes(path, MAX_PAGE).startswith(BEGUN.encode())


def read_listed(path: Path) -> list[str]:
    """The names of files that were drawn beside a page of ours; none where it is somebody else's, or is not there."""
    found = LISTED.search(read_bytes(path, MAX_PAGE)) if is_our_page(path) else None
    try:
        names = [] if found is None else json.loads(found[1])
    except ValueError:
        return []
    return [name for name in names if isinstance(name, str)]


def find_others(folder: Path, page: str, files: Iterable[str]) -> list[str]:
    """Those of `files` that are in a folder and were not drawn with its page."""
    listed = read_listed(folder / page)
    return [name for name in files if name not in listed and (folder / name).exists()]


def _list_files(names: Iterable[str]) -> str:
    """The last line of a page: a comment, which a name cannot end."""
    listed = json.dumps(sorted(names)).replace("<", "\\u003c").replace(">", "\\u003e")
    return "" if listed == "[]" else f"\n<!-- Drawn beside this page: {listed} -->\n"
