"""Run folders that are to be compared: finished ones of one kind, with what each cost and how it learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import RunConfig
from regard.errors import RegardError
from regard.run.folder import open_folder
from regard.systems.result import LOSS, Watched
from regard.tasks.task import RunFacts
from regard.text.config import TokenizerConfig
from regard.training.metrics import METRICS, read_metrics

TASKS = {"translation": "translates", "parsing": "parses", "captions": "describes pictures"}
JUDGES = {"BLEU": "bleu", "F1": "f1", LOSS: "bits_per_byte"}
"""What a validation score is called, and its name in metrics.jsonl."""


@dataclass(frozen=True)
class FinishedRun:
    """A run folder, read but for its weights."""

    name: str
    folder: Path
    config: RunConfig
    facts: RunFacts
    lines: Sequence[Mapping[str, Any]]
    """Of metrics.jsonl."""

    @property
    def task(self) -> str:
        return self.config.task

    def spent(self, what: str) -> float:
        """Tokens, flops or seconds of its whole training."""
        return float(self.lines[-1][what])

    def curve(self, watched: str) -> tuple[Watched, ...]:
        """Every evaluation that has this score."""
        key = JUDGES[watched]
        return tuple(
            Watched(
                step=line["step"],
                tokens=line["tokens"],
                flops=float(line["flops"]),
                seconds=line["seconds"],
                score=line[key],
            )
            for line in self.lines
            if line["kind"] == "valid" and line.get(key) is not None
        )

    def about(self) -> str:
        """What kind of model it is, in a few words."""
        model, vocab_size = self.config.model.to_dict(), self.facts.target_vocab_size or self.facts.vocab_size
        parts = [f"{model['encoder']} to {model['decoder']}"] if "encoder" in model else [self.config.model_name]
        if model.get("attention") is not None and model.get("decoder") != "transformer":  # which has one kind only
            parts.append("no attention" if model["attention"] == "none" else f"{model['attention']} attention")
        if model.get("size") is not None:
            parts.append(str(model["size"]))
        if model.get("d_model") is not None:
            parts.append(f"{model['d_model']} wide")
        if (n := model.get("n_layers")) is not None:
            parts.append(f"{n} layer{'s' * (n != 1)}")
        tokenizer = self.config.section_or_none("target_tokenizer", TokenizerConfig) or self.config.tokenizer
        return ", ".join([*parts, f"{tokenizer.kind} {vocab_size:,}"])


def finished_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """The runs in these folders; refused where one is not finished, or where they are not of one kind."""
    if len(folders) < 2:
        raise RegardError(
            f"A comparison needs at least two runs, and '{folders[0]}' is one. Its own scores: regard eval {folders[0]}"
        )
    places = [folder.resolve() for folder in folders]
    for i, folder in enumerate(folders):
        if places[i] in places[:i]:
            raise RegardError(f"The run '{folder}' is given twice; leave it out once.")
    runs = [_opened(folder, name) for folder, name in zip(folders, names_of(places), strict=True)]
    for run in runs[1:]:
        if run.task != runs[0].task:
            raise RegardError(
                f"'{runs[0].folder}' {TASKS[runs[0].task]} and '{run.folder}' {TASKS[run.task]}: only runs that do the "
                "same can be compared. Leave one of them out."
            )
    return runs


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


def _opened(folder: Path, name: str) -> FinishedRun:
    opened = open_folder(folder)
    config, facts = opened.config, opened.facts
    if config.task not in TASKS:
        raise RegardError(
            f"'{folder}' is a language model ({config.model_name}): finished runs are compared where they translate, "
            "parse or describe pictures. Language models are named (regard compare lstm transformer --data my.txt), "
            "and trained under one budget."
        )
    if not ((folder / "README.md").exists() or (folder / "test.json").exists()):
        raise RegardError(
            f"'{folder}' is not finished: its training was interrupted, or is still going on. End it with: "
            f"regard train --resume --out {folder}"
        )
    lines = read_metrics(folder)
    if not lines:
        raise RegardError(
            f"'{folder}' holds no {METRICS}, so that nothing is known of what its training cost. Bring that file too."
        )
    return FinishedRun(name, folder, config, facts, lines)


def watched_by_all(runs: Sequence[FinishedRun]) -> tuple[str, tuple[str, ...]]:
    """The score that all runs were watched by, and what has to be said about it."""
    judges = [name for name in JUDGES if all(run.curve(name) for run in runs)]
    watched = judges[0] if judges else LOSS
    notes = []
    others = sorted({name for run in runs for name in JUDGES if name != LOSS and run.curve(name)} - set(judges))
    if others:
        without = [run.name for run in runs if not run.curve(others[0])]
        notes.append(
            f"Validation scores are losses: {', '.join(without)} {'was' if len(without) == 1 else 'were'} not watched "
            f"by {others[0]} (teaching.select_by: {JUDGES[others[0]]})."
        )
    return watched, tuple(notes)
