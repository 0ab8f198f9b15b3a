"""A short slice of the torture: `make torture` runs thousands of such files, each in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from torture.corpus import build_few
from torture.mutate import CODES, is_unharmed, make_case
from torture.options import BASES, list_options

from regard import cli

N_CASES = 30


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        build_few(folder)
    return folder


def test_every_verb_is_given_hostile_values() -> None:
    def walk(command: Any, verb: str) -> Iterator[str]:
        inside = getattr(command, "commands", {})
        for name, inner in inside.items():
            yield from walk(inner, f"{verb} {name}".strip())
        yield from () if inside else (verb,)

    assert set(walk(typer.main.get_command(cli.app), "")) == set(BASES)
    assert {option.form for option in list_options()} == {"int", "float", "path", "out", "text"}


def test_broken_files_end_in_a_sentence(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    for number in range(N_CASES):
        case = make_case(number, 1, corpus, tmp_path)
        monkeypatch.chdir(case.folder)
        monkeypatch.setattr(sys, "argv", ["regard", *case.words])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        said = capfd.readouterr()
        assert code in CODES, (case.about, said.err[-500:])
        assert "\x1b" not in said.err, case.about
        assert len(said.err) < 5000, case.about
        assert is_unharmed(case.folder), case.about
