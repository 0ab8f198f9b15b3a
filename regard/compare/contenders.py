"""Run folders that are to be compared: finished ones of one task, with what each cost and how it learned.

Runs that differ by their seed alone are one contender.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from regard.compare.result import CurvePoint, Failure
from regard.config import RunConfig
from regard.errors import RegardError
from regard.files import write_atomically
from regard.lens.views import Views, WindowLosses
from regard.mixers.config import CELLS
from regard.models.table import model_entry
from regard.run.folder import open_folder
from regard.score.figures import Measure, join_names
from regard.tasks.run_facts import IMPORTED, RunFacts, check_file
from regard.tasks.table import task_of
from regard.tasks.task import Task
from regard.text.config import TokenizerConfig
from regard.training.checkpoint import is_finished
from regard.training.metrics import METRICS, read_metrics

FAILURES = "failures"
SEED_PART = re.compile(r"(?:[-_. ]+(?:seed|s)?[-_. ]*\d*|\d+)$")
WATCHED = {
    Measure(name="BLEU", is_higher_better=True): "bleu",
    Measure(name="F1", is_higher_better=True): "f1",
    Measure(name="accuracy", is_higher_better=True): "accuracy",
    Measure(name="macro F1", is_higher_better=True): "macro-f1",
    Measure(name="Matthews", is_higher_better=True): "matthews",
    Measure(name="Pearson", is_higher_better=True): "pearson",
    Measure(name="Spearman", is_higher_better=True): "spearman",
    Measure(name="exact match", is_higher_better=True): "exact",
    Measure(name="bits per byte", is_higher_better=False): "bits_per_byte",
    Measure(name="loss", is_higher_better=False): "nats_per_token",
}
"""Validation measures, and their names in metrics.jsonl; the loss, which every run has, comes last."""
SPENT = ("tokens", "flops", "seconds")
"""What a line of metrics.jsonl says that the training took until then."""


@dataclass(frozen=True)
class FinishedRun:
    """A run folder, read but for its weights."""

    name: str
    folder: Path
    config: RunConfig
    facts: RunFacts
    lines: Sequence[Mapping[str, Any]]
    """Of metrics.jsonl; none where it was imported."""

    @property
    def task(self) -> Task:
        return task_of(self.config)

    @property
    def has_seeds(self) -> bool:
        """Counting draws no random numbers: another seed would give the same model."""
        return not model_entry(self.config.model_name).is_counted

    @property
    def is_imported(self) -> bool:
        """Whether it was trained by another program: what that cost, and on which data, is not known."""
        return self.facts.data == IMPORTED

    def spent(self, what: str) -> float:
        """Steps, tokens, flops or seconds of its whole training: what the last line says that is not broken."""
        found = [line[what] for line in self.lines if line.get(what) is not None]
        if not found:
            raise RegardError(
                f"'{self.folder}': {METRICS} has no line that says how many {what} the training took. Put the file "
                "back as it was written, or leave this run out."
            )
        return float(found[-1])

    def curve(self, watched: Measure) -> list[Mapping[str, Any]]:
        """Every evaluation that has this score, and says what it took; a broken line of the file has not."""
        keys = (WATCHED[watched], *SPENT)
        lines = [line for line in self.lines if line["kind"] == "valid"]
        return [line for line in lines if all(line.get(key) is not None for key in keys)]

    def about(self) -> str:
        """What kind of model it is, in a few words."""
        model, vocab_size = self.config.model.to_dict(), self.facts.target_vocab_size or self.facts.vocab_size
        parts = [f"{model['encoder']} to {model['decoder']}"] if "encoder" in model else [self.config.model_name]
        if model.get("attention") is not None and model.get("decoder") in (None, *CELLS):  # others have one kind
            parts.append("no attention" if model["attention"] == "none" else f"{model['attention']} attention")
        if model.get("without"):
            parts.append(f"without {join_names(model['without'])}")
        if model.get("order") is not None:
            parts.append(f"order {model['order']}")
        if model.get("size") is not None:
            parts.append(str(model["size"]))
        if model.get("d_model") is not None:
            parts.append(f"{model['d_model']} wide")
        if (n := model.get("n_layers")) is not None:
            parts.append(f"{n} layer{'s' * (n != 1)}")
        tokenizer = self.config.section_or_none("target_tokenizer", TokenizerConfig) or self.config.tokenizer
        return ", ".join([*parts, f"{tokenizer.kind} {vocab_size:,}"])


@dataclass
class Entry:
    """A contender on its way: its runs and what each answers, and the seeds that failed."""

    name: str
    runs: list[FinishedRun]
    failures: list[Failure] = field(default_factory=list)
    size_note: str = ""
    n_non_embedding: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for: it describes the contender where no run is left, for none was made or none gave answers."""
    answers: list[list[Any]] = field(default_factory=list)
    lossy: str = ""
    baseline: float | None = None
    positions: list[WindowLosses] = field(default_factory=list)
    """Of every run."""
    views: Views = field(default_factory=Views)


def open_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """The runs in these folders; refused where one is not finished, or where they are not of one task."""
    if len(folders) < 2:
        open_folder(folders[0])  # which may be no run at all
        raise RegardError(
            f"A comparison needs at least two runs, and '{folders[0]}' is one. Its own scores: regard eval {folders[0]}"
        )
    places = [folder.resolve() for folder in folders]
    for i, folder in enumerate(folders):
        if places[i] in places[:i]:
            raise RegardError(f"The run '{folder}' is given twice; leave it out once.")
    runs = [open_run(folder, name) for folder, name in zip(folders, names_of(places), strict=True)]
    for folder in folders:
        if not is_finished(folder):
            raise RegardError(
                f"'{folder}' is not finished: its training was interrupted, or is still going on. End it with: "
                f"regard train --resume --out {folder}"
            )
    first = runs[0]
    for run in runs[1:]:
        if run.config.task != first.config.task:
            raise RegardError(
                f"'{first.folder}' {first.task.summary} and '{run.folder}' {run.task.summary}: only runs of one task "
                "can be compared. Leave one of them out."
            )
    return runs


def open_run(folder: Path, name: str) -> FinishedRun:
    opened = open_folder(folder)
    check_file(folder, opened.facts, METRICS)
    lines = read_metrics(folder)
    if not lines and opened.facts.data != IMPORTED:
        raise RegardError(
            f"'{folder}' holds no {METRICS}, so that nothing is known of what its training cost. Bring that file too."
        )
    return FinishedRun(name, folder, opened.config, opened.facts, lines)


def names_of(folders: Sequence[Path]) -> list[str]:
    """The last part of each path, and as many before it as tell them apart.

    >>> names_of([Path("/runs/lstm"), Path("/runs/big/transformer")])
    ['lstm', 'transformer']
    >>> names_of([Path("/a/lstm"), Path("/b/lstm")])
    ['a-lstm', 'b-lstm']
    """
    for n in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["-".join(part for part in folder.parts[-n:] if part != folder.anchor) for folder in folders]
        if len(set(names)) == len(names):
            break
    return names


def group_by_seed(runs: Sequence[FinishedRun], *, is_each: bool = False) -> list[Entry]:
    """Runs that differ by their seed alone as one contender; each by itself if that leaves one contender only."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(_settings_but_seed(run), []).append(place)
    single = is_each or len(groups) == 1
    chosen = [[place] for place in range(len(runs))] if single else list(groups.values())
    names = group_names([run.name for run in runs], chosen)
    return [
        Entry(name, [runs[i] for i in group], config=runs[group[0]].config.to_dict())
        for name, group in zip(names, chosen, strict=True)
    ]


def _settings_but_seed(run: FinishedRun) -> str:
    """All settings that matter to what is learned, but for the seed."""
    config = {name: part for name, part in run.config.to_dict().items() if name not in ("seed", "checkpoint")}
    runtime = config.get("runtime", {})  # counting has none
    config["runtime"] = {name: value for name, value in runtime.items() if name not in ("device", "n_threads")}
    return repr(config)


def group_names(names: Sequence[str], groups: Sequence[Sequence[int]]) -> list[str]:
    """A run's own name, or what the names of a contender's runs have in common, and how many they are.

    >>> group_names(["lstm-s0", "lstm-s1", "big"], [[0, 1], [2]])
    ['lstm ×2', 'big']
    >>> group_names(["a", "b", "x1", "x2"], [[0, 1], [2, 3]])
    ['a ×2', 'x ×2']
    >>> group_names(["x1", "x2", "x3", "x4"], [[0, 1], [2, 3]])
    ['x1 ×2', 'x3 ×2']
    """
    own = [[names[place] for place in group] for group in groups]
    short = [each[0] if len(each) == 1 else SEED_PART.sub("", _common_prefix(each)) for each in own]
    return [
        (name if name and short.count(name) == 1 else each[0]) + (f" ×{len(each)}" if len(each) > 1 else "")
        for name, each in zip(short, own, strict=True)
    ]


def _common_prefix(names: Sequence[str]) -> str:
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in same)


def choose_watched(runs: Sequence[FinishedRun]) -> tuple[Measure, tuple[str, ...]]:
    """The validation measure that all runs were watched by, and what has to be said about it."""
    shared = [measure for measure in WATCHED if all(run.curve(measure) for run in runs)]
    loss = list(WATCHED)[-1]
    others = [m for m in WATCHED if m not in (loss, *shared) and any(run.curve(m) for run in runs)]
    notes = []
    if others:
        without = [run.name for run in runs if not run.curve(others[0])]
        notes.append(
            f"Validation scores are losses: {', '.join(without)} {'was' if len(without) == 1 else 'were'} not watched "
            f"by {others[0].name} (teaching.select_by: {WATCHED[others[0]]})."
        )
    return (shared[0] if shared else loss), tuple(notes)


def mean_curve(runs: Sequence[FinishedRun], watched: Measure) -> tuple[CurvePoint, ...]:
    """The runs' evaluations, one after the other, as long as all runs went on."""
    found = []
    for points in zip(*(run.curve(watched) for run in runs), strict=False):
        scores = [float(p[WATCHED[watched]]) for p in points]
        means = {name: float(np.mean([p[name] for p in points])) for name in SPENT}
        step, mean = int(points[0]["step"]), float(np.mean(scores))
        found.append(CurvePoint(step=step, score=mean, low=min(scores), high=max(scores), **means))
    return tuple(found)


def forget_failure(name: str, out: Path) -> None:
    """Remove the traceback of a run that failed before and does so no more."""
    (out / FAILURES / f"{name}.txt").unlink(missing_ok=True)
    with suppress(OSError):  # not there, or others failed too
        (out / FAILURES).rmdir()


def describe_failure(error: Exception, name: str, seed: int, out: Path) -> Failure:
    """Why it failed, in one sentence; the traceback goes into a file for whoever wants to know."""
    details = "".join(traceback.format_exception(error))
    write_atomically(out / FAILURES / f"{name}.txt", details)
    message = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, RegardError):
        reason = str(error)
    elif isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        reason = f"out of memory ({message or 'no more was free'})"
    else:
        reason = f"{type(error).__name__}: {message or 'no message'}"
    return Failure(seed=seed, reason=reason)
