"""What a run is for, as one object: everything else asks it and never asks which kind of job it is.

A job is a file in this folder with an object that has what `Task` lists, and a line in `regard/tasks/table.py`. Jobs
whose model learns by gradients share `regard/tasks/gradient.py` for the parts that are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.config import RunConfig
from regard.data.known_sources import (
    are_known,
    are_starts_known,
    is_unread,
    list_sources,
    list_starts,
    remember_sources,
)
from regard.errors import RegardError
from regard.score.judges import Judge
from regard.score.measured import Measured
from regard.settings import Settings
from regard.tasks.elsewhere import Program
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.run_facts import IMPORTED, RunFacts
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer
from regard.training.memory import MemoryEstimate
from regard.training.progress import Reporter
from regard.untrusted.values import make_printable, quote

STANDARD_INPUT = "-"
NAME_DATA = "Name data of yours with --data (in Python: data)"
"""What to do where the data of a run cannot be read."""

ProgressBar = Callable[[], AbstractContextManager[Progress | None]]
"""Opens a block in which reading and encoding are shown; None shows nothing."""


@dataclass(frozen=True)
class OpenRun:
    """A run folder as it was read: all but its weights."""

    folder: Path
    config: RunConfig
    facts: RunFacts
    tokenizers: tuple[Tokenizer, ...]
    """One, or the source's and the target's."""


@dataclass(frozen=True)
class Rehearsal:
    """What a config would do, before it does it: what can be refused has been refused."""

    config: RunConfig
    n_parameters: int
    """0: as many n-grams as the text has."""
    flops_per_token: int
    memory: MemoryEstimate | None
    n_units: Mapping[str, int]
    """How many of `unit` the splits train, valid and test have."""
    vocab_size: int
    read_first_batch: Callable[[], tuple[str, ...]]
    """The texts of the first batch, as the model will read them."""
    notes: tuple[str, ...] = ()
    start: str | None = None
    """What the run, or its decoder, begins as."""
    tokens_per_step: int = 0
    """About how many of `unit` an update learns from; 0: it is counted."""
    unit: str = "token"
    """What is counted, as `Task.unit`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What run.json is to say beside what it says of every run."""
    check_memory: Callable[[], None] = lambda: None
    """Refuses a training that this machine has no memory for."""

    @property
    def first_batch(self) -> tuple[str, ...]:
        return self.read_first_batch()

    def lines(self) -> list[tuple[str, str]]:
        """Name and value of everything worth knowing, in words."""
        sizes = ", ".join(f"{name} {n:,}" for name, n in self.n_units.items())
        folders = self.config.folders
        begins = (
            "decoder begins as" if "decoder_from" in folders
            else "encoder begins as" if "encoder_from" in folders else "starts from"
        )  # fmt: skip
        lines = [(begins, self.start)] if self.start is not None else []
        lines += [("note", note) for note in self.notes]
        lines += [(f"{self.unit}s", sizes), ("vocabulary", f"{self.vocab_size:,} tokens")]
        if self.n_parameters:
            lines.append(("parameters", f"{self.n_parameters:,}"))
            cost = f"{self.flops_per_token:,}; {3 * self.flops_per_token:,} in training"
            lines.append((f"FLOPs a {self.unit}", cost))
        else:
            lines.append(("parameters", "as many n-grams as the text has"))
        if self.memory is not None:
            parts = ", ".join(f"{name} {n / 2**20:,.1f} MB" for name, n in self.memory.parts() if n)
            lines.append(("memory, estimated", f"{self.memory.total / 2**20:,.1f} MB: {parts}"))
        return lines


@dataclass(frozen=True)
class Usage:
    """What one types to use a run: lines for a shell and for Python, with examples that work."""

    shell: tuple[str, ...]
    python: tuple[str, ...]
    files: str = "`tokenizer.json` loads in Hugging Face `tokenizers`"
    """What the card says about the files that a tool may want to read."""
    elsewhere: tuple[Program, ...] = ()
    """Other programs."""


class Evaluation(Protocol):
    """What `run.evaluate` returns: numbers with names of their own, and a form that all evaluations share."""

    def to_dict(self) -> dict[str, Any]: ...

    def measure(self) -> Measured: ...


@dataclass(frozen=True)
class Ending:
    """What training ends with: the score on the test split, where one was taken, and how to use the run."""

    test: Evaluation | None
    usage: Usage


@dataclass(frozen=True)
class Fitting:
    """How a run is trained: in which folder, from which weights, whether it is resumed, and how progress is shown."""

    folder: Path
    start: InitialWeights | None
    resume: bool
    progress: ProgressBar
    reporter: Reporter
    begin_writing: Callable[[], None] = lambda: None
    """Called before the first file of a run that goes on is changed: what refuses does so before."""


class Task(Protocol):
    """One kind of job. `data` is what its own `prepare` returns; it has a `fingerprint`."""

    @property
    def name(self) -> str: ...
    @property
    def verb(self) -> str:
        """`regard VERB RUN` uses a run of it."""

    @property
    def summary(self) -> str:
        """What its runs do, to follow "a run that": "translates"."""

    @property
    def sections(self) -> Mapping[str, type[Settings]]:
        """The config sections that it has beside those of every run; `data` is one of them."""

    @property
    def optional(self) -> tuple[str, ...]:
        """Sections that may be null."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Config keys that name a folder to start from."""

    @property
    def example(self) -> str:
        """`--data` of an example command."""

    @property
    def run_type(self) -> type[Any]:
        """The class of its runs."""

    @property
    def unit(self) -> str:
        """What a training counts, in the singular: losses are means over it, and budgets and speeds are told in it."""

    def recognises(self, given: Mapping[str, Any]) -> bool:
        """Whether a plain config that names no task is for this one."""

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The plain `data` section for what `--data` names; `given` is the section before."""

    def defaults(self, given: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        """Settings by section that this task has other defaults for than all tasks have."""

    def adapt(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The plain config of a new run, with settings that were left open and follow from others that were set."""

    def check(self, config: RunConfig) -> RunConfig:
        """The config, completed by what follows from its other sections; RegardError where two contradict."""

    def complete(self, config: RunConfig) -> RunConfig:
        """The config with numbers in place of nulls that stand for what suits the model."""

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        """Settings that do nothing here, as `section` or `section.key`, and why."""

    def describe_sources(self, config: RunConfig) -> str:
        """Where the training data come from, in a few words."""

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> Any:
        """Read, split and encode the data; a second call finds them in the cache."""

    def reopen(self, config: RunConfig, fingerprint: str) -> Any | None:
        """Data that were prepared before, from the cache; None where they are not there any more."""

    def tokenizers(self, data: Any) -> tuple[Tokenizer, ...]: ...

    def rehearse(self, config: RunConfig, data: Any, start: InitialWeights | None) -> Rehearsal:
        """Refuse all that can be refused with no weights allocated and before anything is written."""

    def fit(self, config: RunConfig, data: Any, fitting: Fitting) -> None:
        """Train, and write what the loop writes into the run folder."""

    def load(self, opened: OpenRun, weights: dict[str, Tensor], device: torch.device, dtype: torch.dtype) -> Any:
        """The run, with its trained model."""

    def test(self, run: Any, data: Any) -> Evaluation | None:
        """The score on the test split, or on an even part of it that takes seconds; None where there is none."""

    def card_rows(self, config: RunConfig, facts: RunFacts, data: Any) -> list[tuple[str, str]]:
        """What the model card says about the data and the vocabulary."""

    def usage(self, config: RunConfig, folder: Path, data: Any) -> Usage: ...

    def export(self, run: Any, to: Path) -> None:
        """Write a run for another program; RegardError where there is none that could read it."""

    def export_onnx(self, run: Any, to: Path) -> None:
        """Write a run as an ONNX file; RegardError where its model cannot be."""

    def export_marian(self, run: Any, to: Path) -> None:
        """Write a run as a Hugging Face folder of Marian; RegardError where it does not translate, or cannot be."""

    @property
    def comparing(self) -> Comparing:
        """How its runs are compared where nothing else is asked for."""

    def load_test_set(self, run: Any, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        """The split of a run's own data, or other data, as items that runs are compared on."""

    def answer(
        self, run: Any, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        """The answer of a run to each chosen item, as one JSON value; `tell` is called with how many are done."""

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Judge:
        """What scores answers to the chosen items."""


def reopen_data(
    task: Task, opened: OpenRun, progress: Progress | None = None, option: str = "--data (in Python: data)"
) -> Any:
    """The data a run was begun with: from the cache, or read again, which must give the same.

    The cache alone can bring back what came from standard input. It is not asked where the user lets a run from
    elsewhere, or an edited config.yaml, name the data, and these were never compared with what the run was begun with.
    `option` is how the user can name other data.
    """
    folder, config, facts = opened.folder, opened.config, opened.facts
    sources = config.data.to_dict()
    is_to_compare = is_unread(sources, facts.data) and STANDARD_INPUT not in list_sources(sources)
    if facts.data != IMPORTED and not is_to_compare and (found := task.reopen(config, facts.data)) is not None:
        return found
    check_sources(folder, config.data, facts, f"Name data of yours with {option}")
    data = task.prepare(_with_own_tokenizers(opened), progress)
    if data.fingerprint != facts.data:
        raise RegardError(
            f"The data in {task.describe_sources(config)} are not those that '{folder}' was begun with (fingerprint "
            f"{data.fingerprint[:12]}, then {facts.data[:12]}). Restore the old ones, or train a new run."
        )
    if is_to_compare:
        remember_sources(sources, facts.data)
    return data


def check_data(task: Task, opened: OpenRun) -> None:
    """Refuse to read anew, for another use, what may not be read, or is not what the run was begun with."""
    check_sources(opened.folder, opened.config.data, opened.facts)
    if is_unread(opened.config.data.to_dict(), opened.facts.data):
        reopen_data(task, opened)


def check_sources(folder: Path, data: Settings, facts: RunFacts, way_out: str = NAME_DATA) -> None:
    """Refuse to read what only a run's config.yaml names, and nobody on this machine: it could be any file.

    `way_out` is what the user can do instead, as a sentence without its end.
    """
    if facts.data == IMPORTED:
        raise RegardError(f"'{folder}' was imported and has no text of its own. {way_out}.")
    sources = data.to_dict()
    if not are_known(sources, facts.data):
        raise RegardError(
            f"'{folder}' was not trained on this machine, and its config.yaml asks to read "
            f"{quote(', '.join(list_sources(sources)), 100)}. {way_out}; or, if these are the right ones, say so once: "
            f"regard check {folder} --trust"
        )


def check_starts(opened: OpenRun) -> None:
    """Refuse to begin anew a run that names weights or word vectors which nobody on this machine has named."""
    config = opened.config.to_dict()
    if not are_starts_known(config, opened.facts.data):
        names = make_printable(", ".join(f"'{name}'" for name in list_starts(config)), 1000)
        raise RegardError(
            f"'{opened.folder}' was not begun on this machine, and its config.yaml asks to begin with "
            f"{names}. If that is the right one, say so once: "
            f"regard check {opened.folder} --trust"
        )


def _with_own_tokenizers(opened: OpenRun) -> RunConfig:
    """The config with the vocabularies that lie in the run folder, so that none is learned anew."""
    config = opened.config.with_section(
        "tokenizer", opened.config.tokenizer.replace(path=str(opened.folder / "tokenizer.json"))
    )
    target = config.section_or_none("target_tokenizer", TokenizerConfig)
    if target is None:
        return config
    # Both sides may name one vocabulary, which is then kept once.
    name = "tokenizer.json" if opened.facts.target_tokenizer is None else TARGET_TOKENIZER
    return config.with_section("target_tokenizer", target.replace(path=str(opened.folder / name)))


def tell_part(n_scored: int, n_available: int, unit: str, which: str = "the first of them") -> tuple[str, ...]:
    """A sentence that says how much of the test split a score is of; none where it is of all.

    >>> tell_part(1000, 2500, "pictures")
    ('Scored on 1,000 of 2,500 test pictures, the first of them; `regard eval` scores all.',)
    """
    part = f"Scored on {n_scored:,} of {n_available:,} test {unit}, {which}; `regard eval` scores all."
    return (part,) if n_scored < n_available else ()


def check_split(split: str) -> str:
    """The name of a split, or an error that says which there are."""
    if split not in ("train", "valid", "test"):
        raise RegardError(f"split must be train, valid or test, not '{split}'.")
    return split


def join_names(names: Any) -> str:
    """File names, nested in lists or not, as one line.

    >>> join_names(["a.en", ["b.en", "b.de"]])
    'a.en, b.en, b.de'
    """
    return names if isinstance(names, str) else ", ".join(join_names(name) for name in names)


def name_split(config: RunConfig, split: str, source: str) -> str:
    """What a split of a run's own data is called; `source` is where its training data come from."""
    named = config.data.to_dict().get(split)
    return f"the {split} split of {source}" if named is None else join_names(named)
