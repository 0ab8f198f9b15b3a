"""The trainings of a study: one after the other, or several at a time, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import RunConfig
from regard.run import engine
from regard.run.initial_weights import apply_start
from regard.run.jobs import Job, check_room, plan_training, run_jobs
from regard.tasks.table import AnyRun, build_config, choose_task
from regard.text.learning import Progress
from regard.training.checkpoint import is_finished
from regard.training.device import pick_device
from regard.training.progress import Status


@dataclass(frozen=True)
class Training:
    """A run of `n_steps` updates in `folder`; `given` has its data, model and whatever else is not by default.

    It is judged once, at the end, so that all models of a study have had the same number of updates.
    """

    folder: Path
    given: Mapping[str, Any]
    n_steps: int
    seed: int
    what: str
    """For people, while it is trained."""

    def build(self) -> RunConfig:
        """Its config, complete but for what follows from its data."""
        whole = apply_start(
            {
                **self.given,
                "seed": self.seed,
                "train": {"max_steps": self.n_steps, "eval_every": self.n_steps, **self.given.get("train", {})},
                "checkpoint": {"has_tensorboard": False, "every_seconds": None, **self.given.get("checkpoint", {})},
            },
            None,
        )
        return build_config(choose_task(whole).adapt(whole))


@dataclass(frozen=True)
class Trainer:
    """Trains what a study asks for, and tells how far it is."""

    tell: Progress
    n_jobs: int = 1

    def train_ahead(self, trainings: Iterable[Training], logs: Path) -> None:
        """Train these, `n_jobs` at a time, before they are asked for; where that is one, when they are asked for."""
        if self.n_jobs == 1:
            return
        jobs = []
        for training in trainings:
            rehearsal = engine.rehearse(training.build())  # which writes what they read into the cache, once
            jobs.append((rehearsal.config, training.folder, rehearsal.memory))
        if jobs:
            device = jobs[0][0].runtime.device
            self.run_ahead([plan_training(*job, self.n_jobs) for job in jobs], logs, device)

    def run_ahead(self, jobs: Sequence[Job], logs: Path, device: str = "cpu") -> None:
        """Run these jobs `n_jobs` at a time; one that dies leaves the others alone, and what it was to do undone."""
        n_done = 0

        def count(_: str) -> None:
            nonlocal n_done
            n_done += 1
            self.tell(what, n_done, len(jobs))

        what = f"{len(jobs)} trainings, {self.n_jobs} at a time"
        check_room(jobs, self.n_jobs, pick_device(device))
        self.tell(what, 0, len(jobs))
        run_jobs(jobs, self.n_jobs, logs, count)

    def train(self, training: Training) -> AnyRun:
        """The run that was trained ahead; one that was not, or that died, is trained now."""
        if not is_finished(training.folder):
            is_begun = (training.folder / "config.yaml").exists()
            reporter = _ProgressOf(training.what, training.n_steps, self.tell)
            engine.train(training.build(), training.folder, resume=is_begun, is_tested=False, reporter=reporter)
        return engine.load(training.folder, training.given.get("runtime", {}).get("device", "auto"))


class _ProgressOf:
    """Hands a training's progress on to a bar, and says nothing else."""

    def __init__(self, what: str, n_steps: int, tell: Progress) -> None:
        self._what, self._n_steps, self._tell = what, n_steps, tell

    def show(self, status: Status) -> None:
        self._tell(self._what, status.step, self._n_steps)

    def start(self, title: str) -> None: ...

    def note(self, text: str) -> None: ...

    def stop(self) -> None: ...
