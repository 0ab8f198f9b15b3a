"""A text, a tiny run of each kind, and the command line in this process or in one of its own."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard import cli

TINY_RUN = {
    "tokenizer": {"kind": "char"},
    "model": {"name": "lstm", "d_model": 16, "n_layers": 1},
    "train": {"max_steps": 6, "n_batch": 4, "n_context": 16, "eval_every": 3},
    "checkpoint": {"has_tensorboard": False},
}


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 20 KB of sentences that repeat enough to be learned from."""
    people, things = ("the cat", "a dog", "my aunt", "the old man"), ("mat", "hat", "boat", "garden", "moon")
    lines = [f"{p} sat on the {t}, and then {q} left." for p in people for t in things for q in people]
    path = tmp_path_factory.mktemp("text") / "my.txt"
    path.write_text("\n".join(lines * 5) + "\n")
    return path


@pytest.fixture(scope="session")
def lstm_run(text: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    from regard import api

    return api.train({**TINY_RUN, "data": {"train": str(text)}}, out=tmp_path_factory.mktemp("runs") / "lstm").folder


@pytest.fixture(scope="session")
def transformer_run(text: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    from regard import api

    model = {"name": "transformer", "d_model": 16, "n_layers": 1, "n_heads": 2, "max_context": 16}
    given = {**TINY_RUN, "model": model, "data": {"train": str(text)}}
    return api.train(given, out=tmp_path_factory.mktemp("runs") / "transformer").folder


@pytest.fixture(scope="session")
def ngram_run(text: Path, tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    from regard import api

    given = {"tokenizer": {"kind": "char"}, "model": {"name": "ngram", "order": 3}, "data": {"train": str(text)}}
    return api.train(given, out=tmp_path_factory.mktemp("runs") / "ngram").folder


@pytest.fixture
def stranger(lstm_run: Path, tmp_path: Path) -> Path:
    """A run folder that came from elsewhere."""
    shutil.copytree(lstm_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def regard(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """`regard("train", "--help")`: the command line's own `main`, in this process, which saves importing torch."""

    def call(*words: object) -> Finished:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, words)])
        capfd.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        captured = capfd.readouterr()
        return Finished(code, captured.out, captured.err)

    return call


@pytest.fixture
def regard_process() -> Callable[..., Finished]:
    """The installed command in a process of its own."""

    def call(*words: object, stdin: str | None = None, cwd: Path | None = None) -> Finished:
        command = [str(Path(sys.executable).with_name("regard")), *map(str, words)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)
        return Finished(done.returncode, done.stdout, done.stderr)

    return call
