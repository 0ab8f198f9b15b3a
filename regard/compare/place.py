"""The folder of a comparison: what may lie in it, how one of ours is known, and that nothing in it leads elsewhere.

OUT/runs.json    of a comparison of finished runs: their folders; the first file there, by which the folder is known

A folder that came from elsewhere may hold links, and a comparison writes to its files and removes some of them by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from regard.compare.contenders import FAILURES
from regard.compare.result import BEGUN, FILE, Comparison
from regard.compare.result_cache import OUTPUTS, VIEWS
from regard.data.locks import LOCK, hold_folder
from regard.errors import RegardError
from regard.files import check_can_be_made, make_folder, refuse_non_file, write_atomically
from regard.report.comparison import DRAWN, check_drawn
from regard.run.folder import refuse_links
from regard.untrusted.small_files import MAX_NOTE, read_json

RUNS, LOGS, OLD_RESULTS = "runs", "logs", "results"
FILES = (FILE, BEGUN, "plan.yaml", "data.json", "text.json", "pace.json", *DRAWN)
FOLDERS = (OUTPUTS, VIEWS, FAILURES, LOGS, RUNS, OLD_RESULTS)
OF_RUNS = (FILE, BEGUN, OUTPUTS, VIEWS, FAILURES, *DRAWN)
"""What a comparison of finished runs writes."""


def check_inside(out: Path) -> None:
    """Refuse links, pipes and devices where a comparison reads and writes, and folders in place of its files."""
    for path, is_folder in _list_known(out):
        refuse_non_file(path, "a comparison")
        if is_folder is not None and path.exists() and path.is_dir() != is_folder:
            found, wanted = ("file", "folder") if is_folder else ("folder", "file")
            raise RegardError(
                f"'{path}' is a {found}, where a comparison has a {wanted}. Move it, or choose another --out."
            )
    for run in (out / RUNS).iterdir() if (out / RUNS).is_dir() else ():
        refuse_links(run)


def _list_known(out: Path) -> Iterator[tuple[Path, bool | None]]:
    """What a comparison reads and writes, each folder before what lies in it, and whether it is a folder."""
    for name in FILES:
        yield out / name, False
    for name in FOLDERS:
        folder = out / name
        yield folder, True
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                yield path, (None if name == RUNS or path.name.startswith(".") else False)


@contextmanager
def hold_place(out: Path) -> Iterator[tuple[int, ...]]:
    """Nobody else compares in `out` inside this block; a folder that was made for it and stayed empty goes again.

    What is given are the locks, for trainings in processes of their own: they hold the folder too, which outlives this
    process where that one is killed.
    """
    if out.exists() and not out.is_dir():  # which is refused when it is looked at
        yield ()
        return
    refusal = (
        f"Another process compares in '{out}', or trains what one that was killed had begun. Wait for it, or choose "
        "another --out."
    )
    is_new = not out.exists()
    with ExitStack() as held:
        while True:
            make_folder(out)
            try:
                locks = held.enter_context(hold_folder(out, refusal, lambda: _is_empty_lock(out)))
                break
            except FileNotFoundError:  # the process that had made it has removed it, empty
                continue
        try:
            yield locks
        finally:
            held.close()
            if is_new:
                with suppress(OSError):  # it is not empty
                    out.rmdir()


def _is_empty_lock(out: Path) -> bool:
    """Whether the lock file may be one that a comparison left which was killed."""
    return (out / LOCK).stat().st_size == 0 and any((out / name).exists() for name in ("plan.yaml", BEGUN))


def check_place_of_runs(out: Path) -> None:
    """Refuse a folder that holds anything but an earlier comparison of finished runs."""
    if not out.exists():
        check_can_be_made(out)
        return
    if not out.is_dir():
        raise RegardError(f"'{out}' is a file; give --out a folder.")
    check_inside(out)
    ours = OF_RUNS if _is_comparison(out) else ()
    strangers = sorted(p.name for p in out.iterdir() if p.name not in ours and not p.name.startswith("."))
    if strangers:
        raise RegardError(
            f"'{out}' is not empty (it holds {strangers[0]}); choose another --out.{_say_what_to_remove(strangers)}"
        )
    check_drawn(out, "choose another --out")
    if (out / FILE).exists() and Comparison.load(out).setup.training is not None:
        raise RegardError(f"'{out}' holds a comparison of models that were trained for it; choose another --out.")


def _say_what_to_remove(strangers: Sequence[str]) -> str:
    """A sentence for a folder in which an earlier version may have been killed: it had no first file."""
    if not set(strangers) <= {OUTPUTS, VIEWS, FAILURES}:
        return ""
    return (
        f" If an earlier version of Regard was killed as it compared here, remove what it left: {', '.join(strangers)}."
    )


def _is_comparison(out: Path) -> bool:
    """Whether a folder holds what a comparison of finished runs wrote, as its first file or its last one says.

    A compare.json that is damaged is an error.
    """
    if (out / FILE).exists():
        Comparison.load(out)
        return True
    try:
        begun = read_json(out / BEGUN, MAX_NOTE)
    except (OSError, RegardError):
        return False
    return isinstance(begun, dict) and begun.get("kind") == "comparison" and isinstance(begun.get("runs"), list)


def begin_comparison(out: Path, runs: Sequence[Path]) -> None:
    """Write, before all else, that the folder is that of a comparison: one that is killed goes on in it."""
    begun = {"kind": "comparison", "runs": [str(folder) for folder in runs]}
    write_atomically(out / BEGUN, json.dumps(begun, ensure_ascii=False, indent=1) + "\n")
