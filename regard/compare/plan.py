"""What is to be trained and compared: contenders, data, budget, seeds; and what asks for the same again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.compare.budget import Budget
from regard.config import RunConfig
from regard.models.table import model_entry
from regard.score.figures import count_text, duration_text
from regard.tasks.table import task_of
from regard.tasks.task import Task
from regard.training.config import RuntimeConfig

SHARED = ("data", "teaching", "encoder", "head", "runtime")
"""Sections of a config that are the same for every contender."""
OWN = ("tokenizer", "target_tokenizer", "optimizer", "schedule")
"""Sections that each may have of its own, beside its model."""
MATCHES = ("total", "non-embedding", "none")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One row of the comparison, before its widths are chosen; `model` holds what the user set, nothing else."""

    name: str
    model: dict[str, Any]
    config: RunConfig

    @property
    def is_counted(self) -> bool:
        """Counting draws no random numbers: one seed says it all."""
        return model_entry(self.config.model_name).is_counted

    def folder(self, seed: int) -> str:
        """What the folder of its run with this seed is called."""
        return "-".join(re.findall(r"[\w.-]+", self.name)) + f"-seed{seed}"

    def sections(self) -> dict[str, Any]:
        """What it has of its own, as plain values."""
        own = _plain_sections(self.config, OWN)
        start = self.config.folders.get("encoder_from")
        own |= {} if start is None else {"encoder_from": start}
        return {"model": {"name": self.config.model_name, **self.model}, **own}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A comparison that can be run."""

    contenders: tuple[Planned, ...]
    budget: Budget
    is_budget_given: bool = True
    n_parameters: int | None  # None: contenders have the size that they are configured with
    match: str  # what of their sizes is equal, one of MATCHES
    seeds: tuple[int, ...]
    prompt: str | None
    out: Path
    train: dict[str, Any]
    asked: Any
    """The contenders as they were given: names, or a mapping."""
    has_task: bool = False
    """Whether the task was named; else it follows from the models."""
    options: tuple[str, ...]
    """What else the command line said, but for the budget."""
    is_of_old_version: bool = False
    """Begun by version 0.1.0: models have their default depth whatever their size, and all read the text in order."""

    @property
    def config(self) -> RunConfig:
        """Of the first contender: data, teaching and runtime are everyone's."""
        return self.contenders[0].config

    @property
    def runtime(self) -> RuntimeConfig:
        return self.config.runtime

    @property
    def task(self) -> Task:
        return task_of(self.config)

    def trainings(self) -> Iterator[tuple[Planned, int]]:
        """Every contender with the first seed, then with the second, and so on.

        What the machine does beside this hits all contenders alike, and a comparison that is stopped has whole seeds.
        """
        for seed in self.seeds:
            for contender in self.contenders:
                if seed == self.seeds[0] or not contender.is_counted:
                    yield contender, seed

    def summary(self) -> str:
        """What is about to happen, in one line."""
        n, seeds = len(list(self.trainings())), len(self.seeds)
        kind = "non-embedding parameters" if self.match == "non-embedding" else "parameters"
        size = "" if self.n_parameters is None else f" of {count_text(self.n_parameters)} {kind}"
        words = (
            f"{n} trainings: {len(self.contenders)} models{size}, {seeds} seed{'s' * (seeds != 1)}, {self.budget} each"
        )
        seconds = self.budget.wished_seconds or self.budget.seconds
        if seconds is None:
            return f"{words}."
        n_descended = sum(not contender.is_counted for contender, _ in self.trainings())
        return f"{words}; about {duration_text(float(f'{1.2 * n_descended * seconds:.2g}'))} in all."

    @property
    def command(self) -> str:
        """What asks for this comparison again, here or on another machine."""
        budget = self.budget.words()
        if isinstance(self.asked, Mapping):
            pairs = zip(budget[::2], budget[1::2], strict=True)
            more = "".join(f", {name[2:]}={text if name == '--seconds' else repr(text)}" for name, text in pairs)
            return f"regard.compare({dict(self.asked)!r}{more})"
        return shlex.join(["regard", "compare", *self.asked, *self.options, *budget, "--out", str(self.out)])

    def to_dict(self) -> dict[str, Any]:
        """Everything that decides what is measured: what resuming checks. `out` and the command are not in it."""
        return {
            **({"task": self.task.name} if self.has_task else {}),
            "contenders": {contender.name: contender.sections() for contender in self.contenders},
            "budget": self.budget.to_dict(),
            "params": self.n_parameters,
            "match": self.match,
            "seeds": list(self.seeds),
            "prompt": self.prompt,
            "train": self.train,
            **_plain_sections(self.config, SHARED),
        }


def _plain_sections(config: RunConfig, names: Sequence[str]) -> dict[str, Any]:
    """Those that there are, as plain values."""
    found = ((name, config.sections.get(name)) for name in names)
    return {name: section.to_dict() for name, section in found if section is not None}
