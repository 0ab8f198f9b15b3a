"""One process at a time holds a folder, whatever the others do to its lock file."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.data import locks
from regard.data.cache import spool_folder
from regard.data.locks import LOCK, hold_folder
from regard.errors import RegardError

fcntl = pytest.importorskip("fcntl")


def test_nobody_else_holds_the_folder_and_its_file_is_gone_at_the_end(tmp_path: Path) -> None:
    with hold_folder(tmp_path, "held"):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(RegardError, match=r"^held$"), hold_folder(tmp_path, "held"):
            pass
    assert not list(tmp_path.iterdir())


def test_a_lock_file_that_was_there_stays_unless_a_killed_holder_left_it(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("mine")
    with hold_folder(tmp_path, "held"):
        pass
    assert (tmp_path / LOCK).read_text() == "mine"
    with hold_folder(tmp_path, "held", is_left=lambda: True):
        pass
    assert not list(tmp_path.iterdir())


def test_a_holder_that_locks_the_file_alone_is_seen(tmp_path: Path) -> None:
    """Version 0.1 does, and other machines see no lock of a folder."""
    with open(tmp_path / LOCK, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RegardError, match="held"), hold_folder(tmp_path, "held"):
            pass


def test_a_lock_file_that_is_removed_and_made_anew_makes_no_two_holders(tmp_path: Path) -> None:
    with hold_folder(tmp_path, "held"):
        (tmp_path / LOCK).unlink()
        with pytest.raises(RegardError, match="held"), hold_folder(tmp_path, "held"):
            pass


def test_what_was_opened_and_then_removed_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last holder removes the file between our opening and our locking it: others lock a new one."""
    (tmp_path / LOCK).touch()
    lock = locks.lock

    def remove_first(handle: int, is_waiting: bool) -> bool:
        if (tmp_path / LOCK).exists() and os.path.samestat(os.fstat(handle), os.stat(tmp_path / LOCK)):
            monkeypatch.setattr(locks, "lock", lock)
            (tmp_path / LOCK).unlink()
        return lock(handle, is_waiting)

    monkeypatch.setattr(locks, "lock", remove_first)
    with hold_folder(tmp_path, "held"), open(tmp_path / LOCK, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert locks.lock is lock


def test_a_process_that_inherits_the_locks_holds_the_folder_until_it_ends(tmp_path: Path) -> None:
    with hold_folder(tmp_path, "held") as held:
        heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=held)
    with pytest.raises(RegardError, match="held"), hold_folder(tmp_path, "held"):
        pass
    heir.communicate(b"\n")
    with hold_folder(tmp_path, "held"):
        pass


def test_a_lock_file_that_may_only_be_read_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's, whose comparison was killed in a folder that both may write."""
    (tmp_path / LOCK).touch()
    open_file = os.open

    def refuse_writing(path: Any, flags: int, *more: Any) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(path, flags, *more)

    monkeypatch.setattr(locks.os, "open", refuse_writing)
    with hold_folder(tmp_path, "held"), pytest.raises(RegardError, match="held"), hold_folder(tmp_path, "held"):
        pass


@pytest.mark.parametrize("form", ["link", "folder", "pipe"])
def test_a_lock_is_a_file(tmp_path: Path, form: str) -> None:
    path = tmp_path / ".lock"
    {"link": lambda: path.symlink_to("x"), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}[form]()
    with pytest.raises(RegardError, match=r"\.lock' is a link, a folder or a pipe"), hold_folder(tmp_path, "held"):
        pass


def test_a_disk_that_cannot_lock_is_worked_on_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with hold_folder(tmp_path, "held"), spool_folder(tmp_path) as spool, spool_folder(tmp_path):
        assert spool.exists()  # nobody takes it for one whose writer was killed
