"""From what a user asks for to a comparison: finished runs by their folders, or models that are trained first."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.compare.contenders import group_by_seed, open_runs
from regard.compare.place import check_place_of_runs, hold_place
from regard.compare.read_plan import list_names, read_plan
from regard.compare.result import Comparison
from regard.compare.testing import OWN_CONTEXT, Request, judge_contenders
from regard.compare.training import train_contenders
from regard.errors import RegardError
from regard.models.table import MODELS
from regard.tasks.task import ProgressBar, Task
from regard.tasks.test_set import Decoding
from regard.training.device import pick_device
from regard.training.progress import Reporter

SPLITS = ("train", "valid", "test")

Contenders = Sequence[str | Path] | str | Path | Mapping[str, Any]
"""Run folders, names of models, one YAML file, or a mapping of what such a file holds."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was asked for beside the contenders; None: nothing."""

    data: str | Sequence[str] | None = None
    out: str | Path | None = None
    levels: Sequence[float] = ()
    beam: int | None = None
    context: str | None = None
    max_tokens: int | None = None
    # only for models that are trained to be compared
    task: str | None = None
    budget: str | None = None
    seconds: float | None = None
    params: str | int | None = None
    match: str | None = None
    seeds: int | Sequence[int] | None = None
    tokenizer: str | None = None
    prompt: str | None = None
    jobs: int | None = None
    # only for finished runs
    split: str | None = None
    device: str | None = None
    each: bool | None = None
    skip_bad: bool | None = None

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Refuse the first of these options that was given."""
        for name in names:
            if getattr(self, name) is not None:
                raise RegardError(f"--{name.replace('_', '-')} {why}. Leave it out.")

    def decoding(self, task: Task, device: str) -> Decoding:
        if not task.comparing.searches:
            self.refuse(
                ("beam", "max_tokens"), f"is for models that search for their answers, and a {task.name} does not"
            )
        else:
            self.refuse(("context",), f"is for language models, and the task is {task.name}")
        is_number = re.fullmatch("[0-9]{1,9}", str(self.context)) is not None and int(self.context or 0) > 1
        if self.context not in (None, OWN_CONTEXT) and not is_number:
            raise RegardError(f"--context takes a number of tokens from 2 on, or own, not '{self.context}'.")
        given = {"beam": self.beam, "max_tokens": self.max_tokens}
        return Decoding(device=device, **{name: value for name, value in given.items() if value is not None})


def run_comparison(contenders: Contenders, options: Options, progress: ProgressBar, reporter: Reporter) -> Comparison:
    """Compare finished runs, or train models under one budget and compare these; writes compare.json."""
    is_finished = options.task is None and names_runs(contenders)
    compare = _compare_runs if is_finished else _compare_trained
    return compare(contenders, options, progress, reporter)


def names_runs(contenders: Contenders) -> bool:
    """Whether run folders are meant; names of models stay names, whatever folders there are."""
    if isinstance(contenders, Mapping):
        return False
    names = list_names(contenders)
    is_run = [
        name not in MODELS and not name.endswith((".yaml", ".yml")) and (os.sep in name or Path(name).is_dir())
        for name in names
    ]
    if any(is_run) and not all(is_run):
        run, other = names[is_run.index(True)], names[is_run.index(False)]
        raise RegardError(
            f"'{run}' is a run folder and '{other}' is none: give run folders, whose training is finished, or names of "
            "models, which are trained to be compared."
        )
    return all(is_run)


def _compare_trained(contenders: Contenders, options: Options, progress: ProgressBar, reporter: Reporter) -> Comparison:
    options.refuse(("split", "device", "each", "skip_bad"), "is for finished runs, and these are to be trained")
    names = ("task", "data", "budget", "seconds", "params", "match", "seeds", "tokenizer", "prompt", "out")
    plan = read_plan(contenders, **{name: getattr(options, name) for name in names})
    decoding = options.decoding(plan.task, plan.runtime.device)
    began = time.monotonic()
    with hold_place(plan.out) as locks:
        done = train_contenders(plan, n_jobs=options.jobs or 1, progress=progress, reporter=reporter, locks=locks)
        training = dataclasses.replace(done.training, seconds=time.monotonic() - began)
        request = Request(
            entries=done.entries, task=plan.task, decoding=decoding, levels=options.levels, prompt=plan.prompt,
            context=options.context, training=training, warnings=done.warnings, command=done.plan.command, out=plan.out,
        )  # fmt: skip
        with progress() as draw:
            return judge_contenders(request, draw, reporter)


def _compare_runs(contenders: Contenders, options: Options, progress: ProgressBar, reporter: Reporter) -> Comparison:
    why = "is for models that are trained to be compared, and these runs are finished"
    options.refuse(("budget", "seconds", "params", "match", "seeds", "tokenizer", "prompt", "jobs"), why)
    device, split = options.device or "auto", options.split or "test"
    pick_device(device, "--device")
    if split not in SPLITS:
        raise RegardError(f"split must be train, valid or test, not '{split}'.")
    runs = open_runs([Path(folder) for folder in list_names(contenders)])
    task = runs[0].task
    place = Path("compare") / "-".join(run.name for run in runs)[:100] if options.out is None else Path(options.out)
    check_place_of_runs(place)
    request = Request(
        entries=group_by_seed(runs, is_each=bool(options.each)), task=task, decoding=options.decoding(task, device),
        data=[options.data] if isinstance(options.data, str) else options.data, split=split,
        skips_bad=bool(options.skip_bad), levels=options.levels, context=options.context,
        command=_write_command(list_names(contenders), options, place), out=place,
    )  # fmt: skip
    with hold_place(place), progress() as draw:
        return judge_contenders(request, draw, reporter)


def _write_command(folders: Sequence[str], options: Options, out: Path) -> str:
    """The command line that asks for a comparison of finished runs again."""
    sources = [options.data] if isinstance(options.data, str) else options.data or ()
    words = ["regard", "compare", *folders, *(word for source in sources for word in ("--data", source))]
    words += [word for level in options.levels for word in ("--reach", f"{level:g}")]
    for name in ("split", "beam", "context"):
        if (value := getattr(options, name)) is not None:
            words += [f"--{name}", str(value)]
    words += [f"--{name.replace('_', '-')}" for name in ("each", "skip_bad") if getattr(options, name)]
    return shlex.join([*words, "--out", str(out)])
