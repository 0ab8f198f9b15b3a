from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.files import (
    PARTIAL,
    check_can_be_made,
    check_not_there,
    remove_folder,
    remove_partial,
    replace_folder,
    write_atomically,
    write_folder_atomically,
)


def test_bytes_and_functions_write_the_whole_file_and_make_its_folder(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "b.txt", b"one")
    write_atomically(tmp_path / "a" / "c.txt", lambda aside: aside.write_text("two") and None)
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"one"
    assert (tmp_path / "a" / "c.txt").read_bytes() == b"two"
    assert len(list((tmp_path / "a").iterdir())) == 2


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(aside: Path) -> None:
        aside.write_bytes(b"ha")
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_one_sentence_that_names_the_folder(tmp_path: Path) -> None:
    def fill_up(aside: Path) -> None:
        with Path("/dev/full").open("wb", buffering=0) as file:
            file.write(b"x")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RegardError, match=f"No space left to write in {tmp_path}. What was there before is untouched"):
        write_atomically(tmp_path / "file", fill_up)
    assert (tmp_path / "file").read_bytes() == b"old"
    with pytest.raises(RegardError, match="No space left"):
        write_folder_atomically(tmp_path / "folder", fill_up)
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("I/O error: No space left on device (os error 28)"),  # safetensors
        OSError("3284 requested and 1984 written"),  # numpy
    ],
)
def test_a_full_disk_told_in_words_only_is_understood_too(tmp_path: Path, error: Exception) -> None:
    def fail(aside: Path) -> None:
        raise error

    with pytest.raises(RegardError, match="No space left to write in"):
        write_atomically(tmp_path / "file", fail)


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    def fail(aside: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(RegardError, match=rf"Cannot write in {tmp_path}: Permission denied\. Choose a folder"):
        write_atomically(tmp_path / "file", fail)


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    inside = tmp_path / "file" / "x"
    said = rf"The folder '{inside}' cannot be made: Not a directory\. Choose another\."
    with pytest.raises(RegardError, match=said):
        write_folder_atomically(inside, lambda aside: None)
    with pytest.raises(RegardError, match=said):
        write_atomically(inside / "note.txt", b"one")
    with pytest.raises(RegardError, match=said):
        check_can_be_made(inside)
    with pytest.raises(RegardError, match=r"The folder '/proc/xx' cannot be made: No such file or directory\."):
        write_folder_atomically(Path("/proc/xx"), lambda aside: None)
    with pytest.raises(RegardError, match=r"The folder '/proc/xx' cannot be made"):
        check_can_be_made(Path("/proc/xx"))


def test_a_folder_that_can_be_made_is_not_there_after_the_question(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    check_can_be_made(tmp_path / "a" / "b")
    check_can_be_made(tmp_path / "kept")
    check_can_be_made(tmp_path / "kept" / "c")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["kept"]


def test_other_errors_are_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "file", lambda aside: os.rename("/nowhere/at/all", aside))


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    seen: list[bool] = []

    def fill(aside: Path) -> None:
        (aside / "one").write_bytes(b"1")
        seen.append((tmp_path / "folder").exists())

    write_folder_atomically(tmp_path / "folder", fill)
    assert seen == [False]
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["one"]

    def fail(aside: Path) -> None:
        fill(aside)
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        write_folder_atomically(tmp_path / "other", fail)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_replacing_a_file_by_a_link_to_itself_leaves_no_second_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"same")
    write_atomically(tmp_path / "file", lambda aside: os.link(tmp_path / "file", aside))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_leftovers_are_removed_and_named_and_nothing_else_is(tmp_path: Path) -> None:
    for name in ("kept", f"{PARTIAL}mine"):  # which no writer of ours calls a file
        (tmp_path / name).write_bytes(b"")
    (tmp_path / f"{PARTIAL}file-1-0123abcd").write_bytes(b"")
    (tmp_path / f"{PARTIAL}folder-1-0123abcd" / "deep").mkdir(parents=True)
    assert remove_partial(tmp_path) == [f"{PARTIAL}file-1-0123abcd", f"{PARTIAL}folder-1-0123abcd"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{PARTIAL}mine", "kept"]
    assert remove_partial(tmp_path / "nowhere") == []


def test_what_a_killed_writer_left_of_the_same_name_goes_a_day_later(tmp_path: Path) -> None:
    old, old_folder, young, other = (tmp_path / f"{PARTIAL}{name}" for name in ("a-1-x", "a-2-x", "a-3-x", "b-1-x"))
    old_folder.mkdir()
    for path in (old, old_folder / "inside", young, other):
        path.touch()
    for path in (old, old_folder / "inside", old_folder, other):
        os.utime(path, (0, 0))
    write_atomically(tmp_path / "a", b"one")
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, other.name, "a"]
    write_folder_atomically(tmp_path / "b", lambda aside: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "a", "b"]


def test_a_folder_is_renamed_before_it_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old" / "inside").mkdir(parents=True)
    names: list[str] = []
    monkeypatch.setattr("regard.files.shutil.rmtree", lambda path, **_: names.append(path.name))
    remove_folder(tmp_path / "old")
    assert not (tmp_path / "old").exists()
    assert names[0].startswith(PARTIAL)


def test_a_folder_is_replaced_by_a_whole_one_and_never_by_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "model").write_text("old")

    def write(beside: Path) -> None:
        beside.mkdir()
        (beside / "model").write_text("new")

    with pytest.raises(RegardError, match="is a folder, and what is written is one file"):
        replace_folder(folder, lambda beside: beside.write_text("a file") and None)
    assert (folder / "model").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["export"]
    replace_folder(folder, write)
    assert (folder / "model").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["export"]


def test_who_is_interrupted_while_the_old_folder_is_removed_has_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "export"
    folder.mkdir()

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(folder, lambda beside: beside.mkdir())
    assert folder.is_dir()


def write_new(beside: Path) -> None:
    beside.mkdir()
    (beside / "model").write_text("new")


def old_export(tmp_path: Path) -> Path:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "model").write_text("old")
    return tmp_path / "export"


def test_the_old_folder_is_put_back_where_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rename = old_export(tmp_path), os.rename

    def fail(old: Path, new: Path) -> None:
        if old.name.startswith(PARTIAL) and new == folder:
            raise KeyboardInterrupt
        rename(old, new)

    monkeypatch.setattr("regard.files.os.rename", fail)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(folder, write_new)
    assert (folder / "model").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["export"]


@pytest.mark.parametrize("n_renames", [0, 1, 2, 3])
def test_a_folder_whose_replacement_was_killed_is_whole_at_the_next_start(tmp_path: Path, n_renames: int) -> None:
    folder = old_export(tmp_path)
    if (process := os.fork()) == 0:
        done, rename = [0], os.rename

        def count(old: Path, new: Path) -> None:
            if done[0] == n_renames:
                os.kill(os.getpid(), signal.SIGKILL)
            done[0] += 1
            rename(old, new)

        os.rename, shutil.rmtree = count, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore
        replace_folder(folder, write_new)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert folder.exists() == (n_renames != 1)
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        os.utime(path, (0, 0))  # days later
    check_not_there(folder, force=False)
    assert (folder / "model").read_text() == ("new" if n_renames >= 2 else "old")
    replace_folder(folder, write_new)
    assert (folder / "model").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["export"]


def test_half_of_a_folder_that_was_being_removed_is_never_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = old_export(tmp_path)

    def remove_half(path: Path, **_: object) -> None:
        (Path(path) / "model").unlink()
        raise KeyboardInterrupt  # as kill -9 would leave it

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", remove_half)
        with pytest.raises(KeyboardInterrupt):
            replace_folder(folder, write_new)
    folder.rename(tmp_path / "moved")
    check_not_there(folder, force=False)
    assert not folder.exists()


def test_a_look_at_a_name_never_removes_what_was_there_before(tmp_path: Path) -> None:
    before = old_export(tmp_path).rename(tmp_path / ".before-export-123-0123abcd")
    (tmp_path / "export").mkdir()  # by the user, after the replacement was killed
    check_not_there(tmp_path / "export", force=False)
    assert (before / "model").read_text() == "old"


def test_processes_that_replace_one_folder_at_the_same_time_all_end_well(tmp_path: Path) -> None:
    folder, context = old_export(tmp_path), multiprocessing.get_context("fork")
    workers = [context.Process(target=_replace_often, args=(str(folder),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (folder / "model").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["export"]


def _replace_often(folder: str) -> None:
    for _ in range(50):
        replace_folder(Path(folder), write_new)


def test_a_folder_that_another_process_made_meanwhile_is_named_in_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    with pytest.raises(RegardError, match=rf"Another process made '{folder}' while this one was writing it"):
        write_folder_atomically(folder, lambda aside: old_export(tmp_path) and None)
    assert (folder / "model").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["export"]


@pytest.mark.parametrize("force", [False, True])
def test_a_pipe_a_socket_or_a_device_is_never_written_over(tmp_path: Path, force: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link"):
        with pytest.raises(RegardError, match=rf"'{tmp_path / name}' is no regular file but a pipe, a socket"):
            check_not_there(tmp_path / name, force)


def test_a_link_to_nothing_is_written_over_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    check_not_there(tmp_path / "link", force=True)
    check_not_there(tmp_path, force=False)  # a folder, which others look at
    with pytest.raises(RegardError, match="is there already"):
        check_not_there(tmp_path / "link", force=False)
