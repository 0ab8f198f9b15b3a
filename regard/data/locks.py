"""Folders that one process at a time may change; the system takes a lock away however its holder ends."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import explain_errors

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None

LOCK = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF)
"""What a disk answers that cannot lock, or not what may only be read; work in a folder there is not refused for it."""


@contextmanager
def hold_folder(folder: Path, refusal: str, is_left: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, ...]]:
    """Nobody else holds `folder` inside this block; RegardError with `refusal` where somebody does.

    The folder is locked, and the file `.lock` in it. Only the file's lock reaches other machines that share the disk,
    and Regard 0.1, which locks nothing else. Only the folder's is safe where holders remove the file: one may lock a
    file that it had opened before, and another one the file that it made anew. The file is removed at the end if it was
    made here, or if `is_left` then says that a holder left it which was killed.

    What is given are the locks: a process that inherits them holds the folder, too, until it ends.
    FileNotFoundError: the folder was removed meanwhile.
    """
    if fcntl is None:
        yield ()
        return
    path = folder / LOCK
    no_file = f"'{path}' is a link, a folder or a pipe, and a lock file of this name is needed there. Move it."
    with ExitStack() as held:
        own = held.enter_context(_hold(folder, os.O_RDONLY, stat.S_ISDIR, refusal, no_file))
        is_new = not os.path.lexists(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        inner = held.enter_context(_hold(path, flags, stat.S_ISREG, refusal, no_file))
        try:
            yield own, inner
        finally:
            with suppress(OSError, RegardError):  # the folder was deleted, or may not be written any more
                if is_new or is_left():
                    path.unlink()


@contextmanager
def _hold(path: Path, flags: int, wanted: Callable[[int], bool], refusal: str, no_file: str) -> Iterator[int]:
    """Open and lock what has the name `path`, also where it was removed and made anew between the two."""
    while True:
        handle = _open(path, flags, no_file)
        try:
            if not wanted(os.fstat(handle).st_mode):
                raise RegardError(no_file)
            try:
                lock(handle, is_waiting=False)
            except BlockingIOError:
                raise RegardError(refusal) from None
            if _is_still(handle, path):
                yield handle
                return
        finally:
            os.close(handle)


def _open(path: Path, flags: int, no_file: str) -> int:
    try:
        try:
            return os.open(path, flags, 0o666)
        except PermissionError:  # somebody else's, in a folder that several share: it need not be written
            if not os.path.lexists(path):
                raise
            return os.open(path, flags & ~(os.O_RDWR | os.O_CREAT))
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise RegardError(no_file) from None
        with explain_errors(path.parent):
            raise


def lock(handle: int, is_waiting: bool) -> bool:
    """Lock an open file for this process; False where the system or the disk cannot lock.

    BlockingIOError where another process has it and nobody is to wait for it.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if is_waiting else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def _is_still(handle: int, path: Path) -> bool:
    """Whether what was opened still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
