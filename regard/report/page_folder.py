"""The folder that a page is drawn into: one that holds files of somebody else is left alone.

A page says that Regard made it, and by that a folder is known again. So there is a page from the beginning, one that
says that it is not finished: a command that was killed may draw into its folder once more.
"""

from __future__ import annotations

from pathlib import Path

from regard.errors import RegardError
from regard.files import PARTIAL, make_folder, write_atomically

MADE = "Made by Regard"
MAX_PAGE = 2**28  # bytes
BEGUN = f"<!DOCTYPE html><meta charset=utf-8><p>{MADE}. This page is not finished: start its command again."


def check_page_folder(folder: Path, page: str = "index.html", force: bool = False) -> None:
    """Refuse a folder that holds files and no page of ours, unless `force` asks for it."""
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"'{folder}' is a file; --out (in Python: save) takes a folder to write into.")
    if (folder / "run.json").exists():
        raise RegardError(f"'{folder}' is a run, and nothing else is drawn into it. Choose another folder.")
    if force or not folder.is_dir():
        return
    held = sorted(path.name for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    if held and not is_our_page(folder / page):
        raise RegardError(
            f"'{folder}' holds files that Regard did not draw ({held[0]}). Choose another folder, or add --force (in "
            "Python: force=True) to draw into this one."
        )


def begin_page(folder: Path, page: str = "index.html", force: bool = False) -> None:
    """Check a folder that is to be drawn into, and make its page the first file in it."""
    check_page_folder(folder, page, force)
    make_folder(folder)
    if not (folder / page).exists():
        write_atomically(folder / page, BEGUN)


def is_our_page(path: Path) -> bool:
    """Whether a file is a page that Regard drew."""
    return path.is_file() and path.stat().st_size <= MAX_PAGE and MADE.encode() in path.read_bytes()
