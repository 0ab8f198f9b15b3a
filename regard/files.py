"""Files that are written whole or not at all: write aside in the same folder, fsync, rename, fsync the folder.

A reader, or a run that is started again after kill -9 or a power cut, sees either the old content or the new one.
What a killed writer leaves behind has a name that starts with `PARTIAL`: `remove_partial` removes it from a folder with
one writer, and elsewhere the next writer of the same name does, a day later. A folder that is being replaced has a name
that starts with `BEFORE` for a moment: the next writer of the same name puts it back if its own is missing.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import RegardError
from regard.untrusted.values import has_lone_surrogate, make_utf8

PARTIAL = ".partial-"
BEFORE = ".before-"
"""A folder that another one is about to replace is called so for a moment, with its name behind."""
OLD = 24 * 3600.0  # seconds: who wrote nothing for so long is not at work any more


class FolderThereError(RegardError):
    """Another process made the folder that was to be made."""


def expand_home(name: str | Path) -> Path:
    """A path whose ~ is the home folder; where there is none, or no such user, ~ is a name as any other.

    >>> expand_home("texts/my.txt"), expand_home("~nobody-of-this-name/my.txt")
    (PosixPath('texts/my.txt'), PosixPath('~nobody-of-this-name/my.txt'))
    """
    return Path(os.path.expanduser(name))


def write_atomically(path: Path, data: str | bytes | Callable[[Path], None]) -> None:
    """Write `path` whole: `data` is its text, its bytes, or a function that writes the file it is handed.

    A text may hold names of files that are no UTF-8; what is written is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "note.txt", "whole")
    ...     (Path(folder) / "note.txt").read_bytes()
    b'whole'
    """
    path = Path(path)
    aside = _aside(path)
    data = make_utf8(data).encode() if isinstance(data, str) else data
    with explain_errors(path.parent):
        _make(path.parent, path.parent)
        remove_old_partial(path.parent, f"{path.name}-")
        try:
            if isinstance(data, bytes):
                aside.write_bytes(data)
            else:
                data(aside)
                _follow_umask(_aside(path), [aside])
            _sync(aside)
            os.replace(aside, path)
            aside.unlink(missing_ok=True)  # still there where both were links to one file: POSIX renames nothing then
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def write_folder_atomically(folder: Path, fill: Callable[[Path], None]) -> None:
    """Write a whole folder: `fill` puts the files into the folder it is handed. `folder` must not exist yet."""
    folder = Path(folder)
    aside = _aside(folder)
    with explain_errors(folder.parent):
        _make(aside, folder)
        remove_old_partial(folder.parent, f"{folder.name}-")
        try:
            fill(aside)
            _follow_umask(aside / _aside(folder).name, [path for path in aside.rglob("*") if path.is_file()])
            for file in sorted(aside.rglob("*")):
                _sync(file)
            _sync(aside)
            _rename_to_new(aside, folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        _sync(folder.parent)


def _rename_to_new(aside: Path, folder: Path) -> None:
    try:
        os.rename(aside, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise FolderThereError(
            f"Another process made '{folder}' while this one was writing it, and it is left as it is. Choose another "
            "name, or start again."
        ) from None


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Have `write` make a folder beside the one that is there, and put it in its place once it is whole.

    A file of the old one that the new one has no name for is somebody else's, and an error. Of two processes that
    replace the same folder the later one's stays.
    """
    folder = Path(folder)
    restore_folder(folder)
    # `write` writes aside of `beside`, and what was replaced is removed aside too.
    for beginning in (folder.name, f"{PARTIAL}{folder.name}", f"{BEFORE}{folder.name}"):
        remove_old_partial(folder.parent, f"{beginning}-")
    beside = _aside(folder)
    try:
        write(beside)
        if not beside.is_dir():
            raise RegardError(f"'{folder}' is a folder, and what is written is one file. Choose another name.")
        with suppress(FileNotFoundError):  # another process has moved it aside, and looked at what it holds
            _check_no_others(folder, beside)
        while not _exchange(folder, beside):
            pass
        moved = _find_moved(folder)  # listed first: where `folder` is there after that, it has come after all of them
        for before in moved if os.path.lexists(folder) else ():
            _drop(before)
    except BaseException:
        _remove(beside)
        raise
    _sync(folder.parent)


def _check_no_others(folder: Path, beside: Path) -> None:
    if others := sorted({path.name for path in folder.iterdir()} - {path.name for path in beside.iterdir()}):
        raise RegardError(
            f"'{folder}' holds files that Regard did not write ({', '.join(others[:3])}). Choose another folder, "
            "or move them."
        )


def _exchange(folder: Path, beside: Path) -> bool:
    """Put `beside` in the place of `folder`, or leave both as they are; False where another process came between."""
    before = folder.with_name(f"{BEFORE}{_aside(folder).name.removeprefix(PARTIAL)}")
    try:
        with suppress(FileNotFoundError):  # another process has moved it aside
            os.rename(folder, before)
        os.rename(beside, folder)
    except BaseException as error:
        with suppress(OSError):  # not moved, or another process has put its own there
            os.rename(before, folder)
        if folder.exists():
            _drop(before)
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    _drop(before)  # only now: who is interrupted keeps one of the two
    return True


def _drop(before: Path) -> None:
    """Remove a folder that was moved aside, under a name by which no half of it is put back."""
    with suppress(FileNotFoundError):  # another process removes it
        remove_folder(before)


def restore_folder(folder: Path) -> None:
    """Put a folder back that a process moved aside to replace it, if that process was killed before it had."""
    for before in _find_moved(folder):
        with suppress(OSError):  # another process puts it back
            if not os.path.lexists(folder):
                os.rename(before, folder)


def _find_moved(folder: Path) -> list[Path]:
    """Where processes have moved a folder that they replace."""
    form = re.compile(rf"{re.escape(BEFORE + folder.name)}-\d+-[0-9a-f]{{8}}")
    with suppress(OSError):  # nothing can be listed
        return [path for path in folder.parent.iterdir() if form.fullmatch(path.name)]
    return []


def make_folder(folder: Path) -> None:
    """Make a folder and those above it."""
    with explain_errors(folder.parent):
        _make(folder, folder)


def check_can_be_made(folder: Path) -> None:
    """Refuse a folder that cannot be made, before hours go into what it is to hold; nothing is left of the trial."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    for path in missing:
        with suppress(OSError):  # somebody else's by now
            path.rmdir()


def refuse_non_file(path: Path, owner: str) -> None:
    """Refuse a link, a pipe, a socket or a device where `owner`, "a run" say, has files and folders of its own.

    In a folder from elsewhere a link may lead to files of the user's, and a pipe is waited for without end.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise RegardError(
            f"'{path}' is a link, and {owner} has files and folders of its own only. Put what it leads to in its "
            "place, or remove it."
        )
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise RegardError(
            f"'{path}' is no regular file but a pipe, a socket or a device, and {owner} has none. Remove it."
        )


def check_is_text(path: Path) -> None:
    """Refuse a name that is no text for weights and their runs: libraries that write these take none."""
    if has_lone_surrogate(str(path)):
        raise RegardError(
            f"'{path}' holds bytes that are no UTF-8 text, and a run's weights cannot be kept under such a name. "
            "Rename it, or choose another."
        )


def check_not_there(path: Path, force: bool) -> None:
    """Refuse to write over a file unless that is asked for, and over a pipe, a socket or a device at all.

    A folder is put back first whose replacement was killed.
    """
    restore_folder(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise RegardError(f"'{path}' is no regular file but a pipe, a socket or a device. Give the name of a file.")
    if os.path.lexists(path) and not path.is_dir() and not force:
        raise RegardError(f"'{path}' is there already. Choose another name, or add --force (in Python: force=True).")


def remove_folder(folder: Path) -> None:
    """Remove a folder so that a kill in the middle leaves a `PARTIAL` name, never a half-empty `folder`."""
    aside = _aside(Path(folder))
    os.rename(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def remove_partial(folder: Path) -> list[str]:
    """Remove what writers that were killed left in `folder`; returns the names. Only for a folder with one writer."""
    left = list_partial(Path(folder))
    for name in left:
        _remove(Path(folder) / name)
    return left


def list_partial(folder: Path) -> list[str]:
    """What writers that were killed left in `folder`, or what one is writing there now."""
    form = re.compile(rf"{re.escape(PARTIAL)}.+-\d+-[0-9a-f]{{8}}")  # as _aside has it; others are somebody else's
    return sorted(path.name for path in folder.glob(f"{PARTIAL}*") if form.fullmatch(path.name))


def is_old(path: Path, seconds: float = OLD) -> bool:
    """Whether nothing was written to a file, or to a folder and the files in it, for so long."""
    try:
        paths = (path, *path.iterdir()) if path.is_dir() else (path,)
        return time.time() - max(each.lstat().st_mtime for each in paths) > seconds
    except OSError:  # gone meanwhile
        return False


def remove_old_partial(folder: Path, beginning: str = "") -> None:
    """Remove what killed writers of files whose names begin so left in `folder`; one still at work keeps its own."""
    with suppress(OSError):  # not there, or it may be written and not be listed
        for name in os.listdir(folder):
            if name.startswith(f"{PARTIAL}{beginning}") and is_old(folder / name):
                _remove(folder / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    # Not by process id alone: containers that share a folder often share that too.
    return path.with_name(f"{PARTIAL}{path.name}-{os.getpid()}-{secrets.token_hex(4)}")


def _make(path: Path, folder: Path) -> None:
    """Make `path`, which is `folder` or stands in for it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if _is_full(error) or _is_forbidden(error):
            raise
        raise RegardError(f"The folder '{folder}' cannot be made: {error.strerror}. Choose another.") from None


def _follow_umask(probe: Path, files: Iterable[Path]) -> None:
    """Give files the mode of the new file `probe`: what libraries write may be readable by its owner alone.

    Links are left alone: what they lead to was not written here.
    """
    probe.touch()
    mode = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for path in files:
        if stat.S_ISREG(path.lstat().st_mode):
            with suppress(PermissionError):  # a second name of somebody else's file
                path.chmod(mode)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def explain_errors(folder: Path) -> Iterator[None]:
    """Say in a sentence that a disk is full, or that a folder may not be written."""
    try:
        yield
    except OSError as error:
        if _is_full(error):
            raise RegardError(_say_no_space(folder)) from error
        if _is_forbidden(error):
            raise RegardError(f"Cannot write in {folder}: {error.strerror}. Choose a folder that is yours.") from error
        raise
    except Exception as error:
        # safetensors writes from Rust and reports a full disk in its own exception, by text only.
        if "os error 28" in str(error) or "No space left" in str(error):
            raise RegardError(_say_no_space(folder)) from error
        raise


def _is_full(error: OSError) -> bool:
    # numpy tells of an array that was written in part by text only.
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or (error.errno is None and "requested and" in str(error))


def _is_forbidden(error: OSError) -> bool:
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def _say_no_space(folder: Path) -> str:
    return (
        f"No space left to write in {folder}. What was there before is untouched; free some space or choose another "
        "folder, then start again."
    )
