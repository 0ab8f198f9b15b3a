"""Lines that are read whole from files and standard input: side by side, and never without end."""

from __future__ import annotations

import io
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import lines
from regard.errors import RegardError


class Endless(io.RawIOBase):
    """Lines without end, counted."""

    def __init__(self) -> None:
        self.n_read = 0

    def readline(self, size: int | None = -1) -> bytes:
        self.n_read += 1
        return b"the cat sat\n"


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Endless:
    """Standard input that never ends."""
    stream = Endless()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    return stream


def test_input_without_end_is_refused_after_so_much_of_it(endless: Endless, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_HELD", 2**20)
    with pytest.raises(
        RegardError, match=r"'-' fills more than 1 MB of memory by line .*, and all .* Split it into parts"
    ):
        lines.read_lines(Path("-"))
    assert endless.n_read == 2**20 // (sys.getsizeof("the cat sat") + 8) + 1


@pytest.mark.parametrize("character", ["a", "\u4e2d", "\U0001f600"])
def test_lines_are_counted_as_python_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, character: str
) -> None:
    """Four bytes for a letter where one of the line is beyond the first 65,536."""
    (tmp_path / "many").write_text(f"{character * 100}\n" * 20_000)
    monkeypatch.setattr(lines, "MAX_HELD", 2**20)
    tracemalloc.start()
    with pytest.raises(RegardError, match="fills more than 1 MB"):
        lines.read_lines(tmp_path / "many")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 2**20


def test_files_are_read_side_by_side_to_the_end_of_the_shortest(endless: Endless, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("a\nb\n")
    with pytest.raises(RegardError, match=r"short' ends after line 2, and '-' goes on: line i of one must belong"):
        lines.read_aligned([Path("-"), tmp_path / "short"])
    assert endless.n_read == 3
    (tmp_path / "other").write_text("c\nd\n")
    assert lines.read_aligned([tmp_path / "short", tmp_path / "other"]) == [["a", "b"], ["c", "d"]]


def test_standard_input_stands_for_one_file_only(endless: Endless) -> None:
    with pytest.raises(RegardError, match="Standard input, -, is named twice"):
        lines.read_aligned([Path("-"), Path("-")])
    assert endless.n_read == 0
