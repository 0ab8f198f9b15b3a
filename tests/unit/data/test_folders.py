"""Files below a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from regard.data.folders import walk_files


def test_files_are_found_at_every_depth_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    wanted = {tmp_path / "x.txt", tmp_path / "a" / "y.txt", tmp_path / "a" / "b" / "z.txt"}
    for path in wanted:
        path.touch()
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    (tmp_path / "link.txt").symlink_to("x.txt")
    (tmp_path / "nowhere.txt").symlink_to("gone")
    os.mkfifo(tmp_path / "pipe")
    assert set(walk_files(tmp_path)) == wanted | {tmp_path / "link.txt"}


@pytest.mark.parametrize("target", ["link.txt", "f1.txt/x", "gone", "a/round/a/round"])
def test_a_link_that_leads_nowhere_hides_no_other_file(tmp_path: Path, target: str) -> None:
    wanted = {tmp_path / f"f{i}.txt" for i in range(9)}
    for path in wanted:
        path.touch()
    for name in ("aa.txt", "link.txt", "zz.txt"):
        (tmp_path / name).symlink_to(target)
    assert set(walk_files(tmp_path)) == wanted


def test_a_link_whose_end_may_not_be_looked_at_is_told_to_whoever_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forbidden:
        name, path = "link.txt", str(tmp_path / "link.txt")

        def is_dir(self, follow_symlinks: bool) -> bool:
            return False

        def is_file(self) -> bool:
            raise PermissionError

    class Listing(list[Any]):
        def __enter__(self) -> Listing:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("regard.data.folders.os.scandir", lambda _: Listing([Forbidden()]))
    assert list(walk_files(tmp_path)) == [tmp_path / "link.txt"]


def test_a_folder_that_goes_away_meanwhile_is_left_out(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    found = []
    for path in walk_files(tmp_path):
        found.append(path)
        other = tmp_path / ("b" if path.parent.name == "a" else "a")
        (other / "file").unlink()
        other.rmdir()
    assert len(found) == 1
