"""Small models, trained for a moment on a built-in text by the ordinary training, in a folder that goes away."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.config import DataConfig
from regard.data.prepared_text import PreparedText, prepare_text
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.tasks.language_model import LANGUAGE_MODEL
from regard.tasks.language_model import LanguageModelRun as Run
from regard.tasks.task import reopen_data
from regard.text.config import TokenizerConfig
from regard.training.progress import Status

if TYPE_CHECKING:
    from regard.text.learning import Progress

DATA = "python-docs"
VOCAB_SIZE = 512  # tokens of BPE: short words and parts of words
# Many small updates, and large ones: after 1,500 of 8 x 64 tokens a Transformer of width 64 heeds the word four places
# back (0.12 nats where it is replaced); after 1,000 of 16 x 64 at the default rate of 1e-3, hardly (0.003).
N_BATCH, RATE = 8, 5e-3


class Told:
    """Hands a training's progress on to a bar, and says nothing else."""

    def __init__(self, what: str, n_steps: int, tell: Progress) -> None:
        self._what, self._n_steps, self._tell = what, n_steps, tell

    def start(self, title: str) -> None:
        pass

    def show(self, status: Status) -> None:
        self._tell(self._what, status.step, self._n_steps)

    def note(self, text: str) -> None:
        pass

    def stop(self) -> None:
        pass


@dataclass(frozen=True)
class Subject:
    """A model to look at, and the text to look at it with."""

    name: str
    run: Run
    text: Stream


@contextmanager
def brief_runs(
    models: Mapping[str, Mapping[str, Any]], *, data: str, n_steps: int, n_context: int, seed: int, tell: Progress
) -> Iterator[list[Run]]:
    """Each of `models` (name -> its settings), trained for `n_steps` updates; the folders end with the block."""
    from regard import api

    tokenizer = {"kind": "bpe", "vocab_size": VOCAB_SIZE}
    prepare_text(DataConfig(train=data), TokenizerConfig(**tokenizer), progress=tell)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="regard-study-") as folder:
        runs = []
        for name, model in models.items():
            config = {
                "seed": seed,
                "data": {"train": data},
                "tokenizer": tokenizer,
                "model": {"name": name, **model},
                "optimizer": {"lr": RATE},
                "train": {
                    "max_steps": n_steps,
                    "n_batch": N_BATCH,
                    "n_context": n_context,
                    "eval_every": n_steps,
                    "max_eval_tokens": 2048,
                },
                "checkpoint": {"has_tensorboard": False, "every_seconds": None},
            }
            told = Told(f"training {name}", n_steps, tell)
            run = api.train(config, out=Path(folder) / name, is_tested=False, reporter=told)
            assert isinstance(run, Run)
            runs.append(run)
        yield runs


def subjects(runs: Sequence[Run], data: str | None, names: Sequence[str] | None = None) -> list[Subject]:
    """The runs with the text each is measured on: `data`, or what the run itself held out."""
    called = names or _names(runs)
    return [Subject(name, run, _text(run, data)) for name, run in zip(called, runs, strict=True)]


def _names(runs: Sequence[Run]) -> list[str]:
    """Folder names where these tell the runs apart, whole paths where they do not; each with the kind of its model."""
    short = [run.folder.resolve().name for run in runs]
    names = short if len(set(short)) == len(short) else [str(run.folder) for run in runs]
    return [
        name if name == run.config.model_name else f"{name} ({run.config.model_name})"
        for name, run in zip(names, runs, strict=True)
    ]


def _text(run: Run, data: str | None) -> Stream:
    if data is not None:
        return run.text_of(data)
    prepared: PreparedText = reopen_data(LANGUAGE_MODEL, run.opened, option="--set data=FILE")
    return prepared.test if len(prepared.test) else prepared.valid


def check_length(subject: Subject, n_tokens: int) -> None:
    """Refuse a text from which no window of `n_tokens` can be cut."""
    if len(subject.text) < n_tokens:
        raise RegardError(
            f"The text for '{subject.name}' has {len(subject.text)} tokens, and {n_tokens} are needed. "
            "Lower max_distance, or name a longer text with --set data=FILE."
        )
