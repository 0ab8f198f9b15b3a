"""The cache of many processes over a long time: nobody removes what is in use, leftovers go, a limit is kept."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from regard.data import cache as cache_of
from regard.data import documents, pictures, prepared_pairs, prepared_text
from regard.data.builtin import BUILTIN, Builtin, builtin_file
from regard.data.cache import HELD, LOCK, Held, find_or_make, key_of, make_kind_folder, remove_abandoned, spool_folder
from regard.data.cache_limit import keep_within_limit, list_entries, list_small, parse_size, remove_all
from regard.data.checksums import FILE, find_damage, write_checksums
from regard.data.config import DataConfig
from regard.data.pairs_config import PairsConfig
from regard.errors import RegardError
from regard.files import PARTIAL, write_atomically
from regard.text.config import TokenizerConfig


def _spool_often(cache: str, n: int) -> None:
    for _ in range(n):
        with spool_folder(Path(cache)) as folder:
            (folder / "text").write_text("text")
            assert (folder / "text").read_text() == "text"


def test_parallel_starts_leave_each_others_folders_alone(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_spool_often, args=(str(tmp_path), 40)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 6
    assert not list(tmp_path.iterdir())


def test_a_folder_is_abandoned_once_its_holder_is_gone(tmp_path: Path) -> None:
    seen, begun = tmp_path / f"{PARTIAL}seen", tmp_path / f"{PARTIAL}begun"
    for folder, content in ((seen, HELD), (begun, b"")):
        folder.mkdir()
        (folder / LOCK).write_bytes(content)
    remove_abandoned(tmp_path)
    assert begun.exists()  # made, and not locked yet: its writer is about to
    assert not seen.exists()
    for path in (begun, begun / LOCK):
        os.utime(path, (0, 0))
    remove_abandoned(tmp_path)
    assert not begun.exists()


def test_a_folder_whose_writer_ends_at_this_moment_is_not_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock can be had, since it is gone; what is in the folder is about to be renamed."""
    folder = tmp_path / f"{PARTIAL}entry"
    folder.mkdir()
    held = Held(folder)
    held.__enter__()
    lock = fcntl.flock

    def end_first(file: Any, how: int) -> None:
        held.__exit__()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", end_first)
    remove_abandoned(tmp_path)
    assert folder.exists()


def test_files_that_killed_writers_left_go_once_they_are_old(tmp_path: Path) -> None:
    young, old = tmp_path / f"{PARTIAL}young", tmp_path / f"{PARTIAL}old"
    young.touch()
    old.touch()
    os.utime(old, (0, 0))
    remove_abandoned(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [young.name]


def test_what_is_being_written_stays_when_the_cache_is_emptied(tmp_path: Path) -> None:
    make_entry(tmp_path, "whole", 1000, 0)
    at_work = tmp_path / "encoded" / f"{PARTIAL}at-work"
    at_work.mkdir()
    (tmp_path / "tokenizers").mkdir()
    (tmp_path / "tokenizers" / f"{key_of('a')}.json").write_bytes(b"x" * 10)
    assert remove_all(tmp_path) > 1010
    assert [path.name for path in tmp_path.rglob("*") if path.parent != tmp_path] == [at_work.name]


def test_an_entry_that_others_remove_is_made_again(tmp_path: Path) -> None:
    folder, n_opened = tmp_path / "encoded" / "a", 0

    def open_folder(found: Path) -> str | None:
        nonlocal n_opened
        n_opened += 1
        if n_opened == 2:  # just after it was written
            shutil.rmtree(found)
        return (found / "x").read_text() if (found / "x").exists() else None

    assert find_or_make(folder, open_folder, lambda aside: (aside / "x").write_text("x") and None) == "x"


def make_entry(cache: Path, name: str, size: int, age: float) -> Path:
    def fill(folder: Path) -> None:
        (folder / "x.npy").write_bytes(b"x" * size)

    folder = cache / "encoded" / key_of(name)
    find_or_make(folder, lambda f: f if f.exists() else None, fill)
    os.utime(folder, (time.time() - age,) * 2)
    return folder


BOOKS = [f"Book {i} is about cats that sat on mat {i}." for i in range(40)]


def _read_builtin(cache: str, has_begun: Any, may_end: Any) -> None:
    BUILTIN["python-docs"] = Builtin("books", lambda: iter(BOOKS))
    found = documents.read_documents(DataConfig(train="python-docs"), cache=Path(cache))
    read = [next(found)]
    has_begun.set()
    may_end.wait()
    assert [*read, *found] == [*BOOKS]


def test_a_builtin_text_that_another_process_reads_stays_when_the_cache_is_emptied(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    has_begun, may_end = context.Event(), context.Event()
    reader = context.Process(target=_read_builtin, args=(str(tmp_path), has_begun, may_end))
    reader.start()
    assert has_begun.wait(60)
    remove_abandoned(tmp_path)
    remove_all(tmp_path)
    kept = sorted(path.suffix for path in (tmp_path / "builtin").iterdir())
    may_end.set()
    reader.join()
    assert (kept, reader.exitcode) == ([".jsonl", ".sha256"], 0)
    remove_all(tmp_path)
    assert not list(tmp_path.glob("*/*"))


def test_a_builtin_text_is_prepared_though_the_cache_is_emptied_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read three times: to split it, to learn the words, to encode it."""
    monkeypatch.setitem(BUILTIN, "python-docs", Builtin("books", lambda: iter(BOOKS)))
    monkeypatch.setattr(prepared_text, "keep_tokenizer", lambda *given: remove_all(tmp_path))
    words = TokenizerConfig(kind="word", vocab_size=None)
    assert len(prepared_text.prepare_text(DataConfig(train="python-docs"), words, cache=tmp_path).train) > 100


def test_a_builtin_text_that_was_damaged_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILTIN, "python-docs", Builtin("books", lambda: iter(BOOKS)))
    path = builtin_file("python-docs", tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"mat 7", b"mat 5"))
    assert builtin_file("python-docs", tmp_path).read_bytes() == whole
    monkeypatch.setitem(BUILTIN, "python-docs", Builtin("none", lambda: iter(())))
    assert builtin_file("python-docs", tmp_path).read_bytes() == whole  # found
    remove_all(tmp_path)
    assert not list(tmp_path.glob("*/*"))


def test_what_was_not_used_for_longest_goes_first_and_what_is_young_stays(tmp_path: Path) -> None:
    old, older, young = (make_entry(tmp_path, n, 10_000, age) for n, age in (("b", 8000), ("a", 9000), ("c", 10)))
    assert [entry.path for entry in list_entries(tmp_path)] == [older, old, young]
    removed = keep_within_limit(young, limit=32_000)
    assert [entry.path for entry in removed] == [older]
    keep_within_limit(young, limit=1)
    assert not old.exists()
    assert young.exists()
    (make_kind_folder(tmp_path, "known") / "a note").touch()
    remove_all(tmp_path)
    assert list(tmp_path.glob("*/*")) == [tmp_path / "known" / "a note"]


def test_a_folder_of_the_cache_stays_private_when_it_is_emptied_meanwhile(tmp_path: Path) -> None:
    folder = make_kind_folder(tmp_path, "tokenizers")
    remove_all(tmp_path)
    write_atomically(folder / "a.json", "{}")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_cache_of_somebody_elses_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folders may not be looked into."""
    folder = tmp_path / "pictures" / "a"
    exists = Path.exists

    def refuse(path: Path) -> bool:
        if folder in (path, path.parent):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(RegardError, match=rf"The cache folder {tmp_path} cannot be used: Permission denied\. Set"):
        find_or_make(folder, lambda _: None, lambda _: None)


def test_nothing_of_other_programs_is_removed_from_a_folder_that_they_share(tmp_path: Path) -> None:
    theirs = [tmp_path / name for name in ("documents/thesis.txt", "huggingface/model.bin", "pictures/album/a.jpg")]
    theirs += [tmp_path / name for name in ("features/x.safetensors", "tokenizers/mine.json", "builtin/notes.txt")]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    make_entry(tmp_path, "a", 1000, 9000)
    young = make_entry(tmp_path, "b", 1000, 9000)
    assert len(list_entries(tmp_path)) == 2
    assert not list_small(tmp_path)
    assert len(keep_within_limit(young, limit=1)) == 1
    remove_all(tmp_path)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(theirs)


def test_a_limit_is_a_size() -> None:
    assert parse_size("2", "x") == 2 * 10**9
    with pytest.raises(RegardError, match="REGARD_CACHE_MAX must be a size such as 20GB or 500MB, not 'much'"):
        parse_size("much", "REGARD_CACHE_MAX")


def test_a_flipped_bit_in_an_entry_is_found(tmp_path: Path) -> None:
    folder = make_entry(tmp_path, "a", 1000, 0)
    assert find_damage(folder) is None
    (folder / "x.npy").write_bytes(b"x" * 999 + b"y")
    assert find_damage(folder) == "x.npy has changed since it was written"
    assert find_damage(folder, max_bytes=10) is None  # too much to read each time
    (folder / "x.npy").write_bytes(b"x")
    assert find_damage(folder, max_bytes=10) == "x.npy is missing or of another size"
    for name in ("a.npy", "z.npy"):  # before and after a large one
        (folder / "x.npy").write_bytes(b"x" * 1000)
        for small in ("a.npy", "z.npy"):
            (folder / small).write_bytes(b"small")
        write_checksums(folder)
        (folder / name).write_bytes(b"smale")
        assert find_damage(folder, max_bytes=100) == f"{name} has changed since it was written"
    (folder / FILE).write_text("[]")
    assert find_damage(folder) == f"{FILE} cannot be read"
    (folder / FILE).unlink()
    assert find_damage(folder) is None  # written by an earlier version


def test_a_full_disk_while_pictures_are_kept_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, *_: Any) -> None:
            self.n = 0

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, data: bytes) -> None:
            self.n += len(data)
            if self.n > 500:
                raise OSError(errno.ENOSPC, "No space left on device")

    files = []
    for i in range(3):
        files.append(tmp_path / f"{i}.png")
        Image.new("RGB", (9, 9), (i, 0, 0)).save(files[-1])
    monkeypatch.setattr(pictures, "open", Full, raising=False)
    with pytest.raises(RegardError, match="No space left to write in"):
        pictures.load_pictures(files, 8, "crop", tmp_path / "cache")
    monkeypatch.undo()
    found = pictures.load_pictures(files, 8, "crop", tmp_path / "cache")
    np.testing.assert_array_equal(found.pixels[2], np.full((8, 8, 3), (2, 0, 0)))
    assert cache_of.LOCK not in [path.name for path in (tmp_path / "cache").rglob("*")]


def test_a_cache_that_is_emptied_meanwhile_loses_nothing_that_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every folder is removed as soon as it was opened; what was read stays mapped."""

    def find_and_empty(folder: Path, *given: Any) -> Any:
        found = find_or_make(folder, *given)
        remove_all(tmp_path / "cache")
        return found

    for module in (prepared_text, prepared_pairs):
        monkeypatch.setattr(module, "find_or_make", find_and_empty)
    (tmp_path / "text.txt").write_text("".join(f"the cat sat on mat {i}\n" for i in range(60)))
    (tmp_path / "pairs.tsv").write_text("".join(f"The cat {i}.\tDie Katze {i}.\n" for i in range(60)))
    words, cache = TokenizerConfig(kind="word", vocab_size=None), tmp_path / "cache"
    text = prepared_text.prepare_text(DataConfig(train=str(tmp_path / "text.txt")), words, cache=cache)
    assert len(text.train) > 100
    pairs = prepared_pairs.prepare_pairs(
        PairsConfig(train=str(tmp_path / "pairs.tsv")), words, cache=tmp_path / "cache"
    )
    assert len(pairs.train) > 40
    assert prepared_text.open_text(text.fingerprint, cache) is None


def test_a_user_without_a_home_is_told_where_the_cache_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("REGARD_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", refuse)
    with pytest.raises(RegardError, match=r"no home folder for the cache\. Set REGARD_CACHE to a folder"):
        cache_of.cache_root()
