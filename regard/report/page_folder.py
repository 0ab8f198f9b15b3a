"""The folder that a page is drawn into: one that holds files of somebody else, or another page, is left alone.

A page says that Regard made it; its last line says of what kind it is and lists the files beside it that were drawn
with it, and only these are written over. So there is a page from the beginning, one that says that it is not finished:
a command that was killed may draw into its folder once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.files import PARTIAL, make_folder, write_atomically
from regard.untrusted.small_files import parse_json, read_bytes

MADE = "Made by Regard"
MAX_PAGE = 2**28  # bytes
BEGUN = f"<!DOCTYPE html><meta charset=utf-8><p>{MADE}. This page is not finished: start its command again."
WAY_OUT = "Choose another folder, or add --force (in Python: force=True) to draw into this one."
_LISTED = re.compile(rb"\n<!-- Drawn beside this page: (\{[^<>]*\}) -->\s*\Z")


@dataclass(frozen=True)
class Drawing:
    """A kind of page with files beside it."""

    kind: str
    """Which page it is, to follow "a page of"."""
    page: str
    beside: str
    """The form of the names of the files beside it, as a regular expression."""
    is_listed_late: bool = False
    """Whether the names are known one by one: in a folder whose page is not finished all of this form are its own."""


LOOK = Drawing(
    "what models compute",
    "index.html",
    r"look\.json|(alignment|attention|cells|faithfulness|gradients|influence|layers|next|over-time|picture|positions|"
    r"surprise|vectors)(-\d+)?\.(png|svg)",
)
CAPTIONS = Drawing("captions", "index.html", r"sheet\.png|\d{4}-.*\.png", is_listed_late=True)
SCORES = Drawing("a run's scores", "report.html", r"reliability\.png")
TREES = Drawing("trees", "report.html", r"(?!)")
WORD_MAP = Drawing("word vectors", "report.html", r"numbers\.json|figure\.png")


def study_drawing(name: str) -> Drawing:
    """The page of a study with its picture and its numbers."""
    return Drawing(f"the study {name}", "report.html", r"numbers\.json|figure\.png")


@dataclass(frozen=True)
class Listing:
    """What the last line of a page says; `kind` is None where it says nothing, as those of earlier versions do."""

    kind: str | None = None
    files: frozenset[str] = frozenset()

    def line(self) -> str:
        """A comment, which a name cannot end."""
        listed = json.dumps({"kind": self.kind, "files": sorted(self.files)})
        listed = listed.replace("<", "\\u003c").replace(">", "\\u003e")
        return f"\n<!-- Drawn beside this page: {listed} -->\n"


def check_page_folder(folder: Path, drawing: Drawing, force: bool = False, way_out: str = WAY_OUT) -> None:
    """Refuse a folder with files and no page of this kind, or with files of its names that its page does not list.

    `force` asks for it nevertheless.
    """
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"'{folder}' is a file; --out (in Python: save) takes a folder to write into.")
    if (folder / "run.json").exists():
        raise RegardError(f"'{folder}' is a run, and nothing else is drawn into it. Choose another folder.")
    if force or not folder.is_dir():
        return
    path = folder / drawing.page
    held = sorted(path.name for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    if not is_our_page(path):
        if held:
            raise RegardError(f"'{folder}' holds files that Regard did not draw ({held[0]}). {way_out}")
        return
    listing = read_listing(path)
    if listing.kind not in (None, drawing.kind):
        raise RegardError(
            f"'{folder}' holds a page of {listing.kind}, and one of {drawing.kind} would take its place. {way_out}"
        )
    if drawing.is_listed_late and _is_begun(path):
        return
    others = [name for name in held if re.fullmatch(drawing.beside, name) and name not in listing.files]
    if others and listing.kind is None:
        raise RegardError(
            f"'{folder}' holds {others[0]}, of which its page does not say that it was drawn with it: an earlier "
            f"version of Regard drew the page, or the file is another one. {way_out}"
        )
    if others:
        raise RegardError(f"'{folder}' holds files that Regard did not draw ({others[0]}). {way_out}")


def begin_page(folder: Path, drawing: Drawing, files: Collection[str] = (), force: bool = False) -> None:
    """Check a folder that is to be drawn into, and have a page there that lists `files`, before they are drawn."""
    check_page_folder(folder, drawing, force)
    make_folder(folder)
    path = folder / drawing.page
    listing, is_ours = read_listing(path), is_our_page(path)
    if is_ours and listing.kind not in (None, drawing.kind):
        return  # by force: the other page stays until this one is whole
    line = Listing(drawing.kind, listing.files.union(files)).line()
    if not path.exists() or (is_ours and drawing.is_listed_late):
        write_atomically(path, BEGUN + line)
    elif is_ours and not listing.files.issuperset(files):
        # The page of an earlier command stays until the new one is whole.
        write_atomically(path, _LISTED.sub(b"", read_bytes(path, MAX_PAGE)) + line.encode())


def finish_page(folder: Path, text: str, drawing: Drawing, files: Iterable[str] = ()) -> Path:
    """Write a page that was begun, after the `files` beside it; what was drawn before and is there stays listed."""
    path = folder / drawing.page
    before = read_listing(path)
    names = frozenset(files) | (before.files if before.kind == drawing.kind else frozenset())
    listing = Listing(drawing.kind, frozenset(name for name in names if (folder / name).exists()))
    write_atomically(path, text + listing.line())
    return path


def is_our_page(path: Path) -> bool:
    """Whether a file is a page that Regard drew."""
    return path.is_file() and path.stat().st_size <= MAX_PAGE and MADE.encode() in read_bytes(path, MAX_PAGE)


def read_listing(path: Path) -> Listing:
    """What the last line of a page of ours says; nothing where it is somebody else's, or is not there."""
    found = _LISTED.search(read_bytes(path, MAX_PAGE)) if is_our_page(path) else None
    try:
        said = {} if found is None else parse_json(found[1], str(path))
    except RegardError:
        said = {}
    kind, files = said.get("kind"), said.get("files")
    if not isinstance(kind, str) or not isinstance(files, list):
        return Listing()
    return Listing(kind, frozenset(name for name in files if _is_file_name(name)))


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name.encode(errors="replace")) < 256 and not {"/", "\\", "\0"} & set(name)


def _is_begun(path: Path) -> bool:
    """Whether a page of ours is one that a command began and did not finish."""
    return read_bytes(path, MAX_PAGE).startswith(BEGUN.encode())
