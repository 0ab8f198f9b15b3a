"""Contenders that are trained to be compared: one budget, the same data, every seed.

OUT/plan.yaml            what is compared; another plan in the same folder is refused
OUT/pace.json            tokens a second of each contender, where the budget is a time
OUT/data.json            a fingerprint of the data for each contender; other data are refused too
OUT/runs/NAME-seedK/     an ordinary run folder each; what is finished is not trained again
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any, cast

from regard.compare.contenders import Entry, describe_failure, open_run
from regard.compare.going_on import as_yaml, check_same_data, go_on_with
from regard.compare.pace import find_pace_warnings, grant_wish, measure_speed, read_speeds, write_speeds
from regard.compare.plan import Plan, Planned
from regard.compare.result import SAME_TOKENS, Failure, Training
from regard.compare.width import Matched, match_width, with_depth
from regard.config import RunConfig
from regard.data.known_sources import remember_sources, remember_starts
from regard.errors import InterruptedRunError, RegardError
from regard.files import check_is_text, write_atomically
from regard.models.outline import count_non_embedding
from regard.run import engine
from regard.run.folder import check_free, check_same, load_config, say_what_to_remove
from regard.run.jobs import check_room, plan_training, run_jobs
from regard.score.figures import count_text
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.run_facts import CONFIG, read_facts
from regard.tasks.task import ProgressBar, Rehearsal
from regard.training.checkpoint import MODEL, is_finished
from regard.training.config import TrainConfig
from regard.training.device import pick_device
from regard.training.progress import Once, Reporter

if TYPE_CHECKING:
    from regard.text.learning import Progress

N_EVALUATIONS = 20  # points of a learning curve, about
EVAL_TOKENS = (2_048, 16_384)  # the fewest and the most tokens a point, as the budget allows
FLOPS_PER_SECOND = {"cpu": 1e10, "cuda": 1e13}  # of one core, of one GPU; only to guess how often to evaluate
STEPS_PER_SECOND = 100  # no more than this, however small the model


@dataclass(frozen=True)
class Sized:
    """A contender whose depth and widths are chosen, with the config of its runs but for their seed and limits."""

    contender: Planned
    model: Matched
    config: RunConfig
    rehearsal: Rehearsal

    @property
    def cost(self) -> float:
        """Training FLOPs a token: forward once, backward costs twice that."""
        return 3.0 * self.rehearsal.flops_per_token


@dataclass(frozen=True)
class Trained:
    """Contenders with their runs, the plan as its folder holds it, and what makes the comparison less sure."""

    entries: list[Entry]
    plan: Plan
    training: Training
    warnings: tuple[str, ...]


def train_contenders(
    plan: Plan, *, n_jobs: int = 1, progress: ProgressBar, reporter: Reporter, locks: Sequence[int] = ()
) -> Trained:
    """Train what is not finished yet, `n_jobs` at a time. A contender that fails is reported and the others go on.

    `locks` on the folder are kept by trainings in processes of their own.
    """
    if n_jobs > 1 and plan.budget.seconds is not None:
        raise RegardError(
            "--jobs lets trainings share a machine, and --seconds measures how fast it is. Leave one out."
        )
    check_is_text(plan.out)
    plan, reporter = go_on_with(plan), Once(reporter)  # what is noted of the data holds for all trainings
    try:
        with progress() as draw:
            data = _prepare(plan, draw)
        sized = {contender.name: _size(contender, data[contender.name], plan) for contender in plan.contenders}
        plan, speeds = _settle_budget(plan, [s for s in sized.values() if isinstance(s, Sized)], reporter)
        check_same_data(plan, data)
        for contender in plan.contenders:
            remember_sources(contender.config.data.to_dict(), data[contender.name].fingerprint)
            remember_starts(contender.config.to_dict(), data[contender.name].fingerprint)
        reporter.note(plan.summary())
        entries = {name: _begin(name, found, plan) for name, found in sized.items()}
        for contender, seed in plan.trainings():
            if isinstance(found := sized[contender.name], Sized):
                _check_folder(_folder_of(plan, contender, seed), _with_limits(plan, found, seed))
        if n_jobs > 1:
            _train_together(plan, sized, n_jobs, reporter, locks)
        for contender, seed in plan.trainings():
            if isinstance(found := sized[contender.name], Sized):
                _train_seed(entries[contender.name], found, _with_limits(plan, found, seed), plan, reporter)
        listed = _count_same_tokens(entries, sized, plan, reporter)
    except (KeyboardInterrupt, InterruptedRunError):
        trainings = list(plan.trainings())
        n_done = sum(is_finished(_folder_of(plan, contender, seed)) for contender, seed in trainings)
        raise InterruptedRunError(
            f"Stopped with {n_done} of {len(trainings)} trainings finished; all is saved. Go on with: {plan.command}"
        ) from None
    n_units = next((s.rehearsal.n_units for s in sized.values() if isinstance(s, Sized)), {})
    warnings = find_pace_warnings(listed, speeds, plan.budget, plan.task.unit)
    return Trained(listed, plan, _describe(plan, n_units), tuple(warnings))


PURPOSE = {"train": "to train on", "valid": "to watch", "test": "to test on"}


def _describe(plan: Plan, n_units: Mapping[str, int]) -> Training:
    sizes = ", ".join(f"{count_text(n)} {plan.task.unit}s {PURPOSE[split]}" for split, n in n_units.items())
    batch = ", ".join(f"{name} {value}" for name, value in plan.train.items())
    return Training(
        data=f"{plan.task.describe_sources(plan.config)}: {sizes}",
        budget=plan.budget.describe(plan.task.unit),
        n_parameters=plan.n_parameters,
        match=plan.match,
        seeds=plan.seeds,
        batch=f"the same data in batches of one size for every contender{f' ({batch})' if batch else ''}",
        seconds=0.0,
    )


def _settle_budget(plan: Plan, sized: Sequence[Sized], reporter: Reporter) -> tuple[Plan, dict[str, float]]:
    """The plan with FLOPs for a time that was wished for, written down; and tokens a second by contender."""
    if (plan.out / "plan.yaml").exists():
        return plan, read_speeds(plan.out)
    speeds: dict[str, float] = {}
    descended = [found for found in sized if not found.contender.is_counted]
    if descended and (plan.budget.is_wish or plan.budget.seconds is not None):
        trainings = "1 short training" if len(descended) == 1 else f"{len(descended)} short trainings"
        reporter.note(f"Measuring the speed of this machine: {trainings}.")
        for found in descended:
            try:
                speeds[found.contender.name] = measure_speed(found.config, plan.train)
            except InterruptedRunError:
                raise
            except Exception:  # which its training will meet again, and report
                reporter.note(f"The speed of {found.contender.name} could not be measured.")
    if plan.budget.is_wish and speeds:
        rates = [found.cost * speeds[name] for found in descended if (name := found.contender.name) in speeds]
        plan = replace(plan, budget=grant_wish(plan.budget, rates, reporter))
    write_atomically(plan.out / "plan.yaml", as_yaml(plan))  # first: a folder without it is refused
    write_speeds(plan.out, speeds)
    return plan, speeds


def _prepare(plan: Plan, draw: Progress | None) -> dict[str, Any]:
    """The data of every contender by its name; those that share their tokenizers share their data."""
    by_tokenizers: dict[str, Any] = {}
    found = {}
    for contender in plan.contenders:
        sections = contender.config.sections
        key = repr((sections["tokenizer"], sections.get("target_tokenizer")))
        if key not in by_tokenizers:
            by_tokenizers[key] = plan.task.prepare(contender.config, draw)
        found[contender.name] = by_tokenizers[key]
    return found


def _size(contender: Planned, data: Any, plan: Plan) -> Sized | Failure:
    """The contender with its depth and widths chosen, or why it cannot be trained."""
    try:
        model = choose_size(contender, data, plan)
        config = _with_train(replace(contender.config, model=model.config), plan.train)
        rehearsal = plan.task.rehearse(config, data, None)
        if (charged := _read_charge(contender, plan)) is not None:
            rehearsal = replace(rehearsal, flops_per_token=charged)
        if not rehearsal.n_units["test"]:
            raise RegardError(
                "There is nothing to test on: the test split is empty. Name test data, or raise data.p_test."
            )
        return Sized(contender, model, config, rehearsal)
    except RegardError as error:
        return Failure(seed=plan.seeds[0], reason=str(error))


def _read_charge(contender: Planned, plan: Plan) -> int | None:
    """FLOPs a token that its begun runs were charged: by another formula their budget would end elsewhere."""
    folders = (_folder_of(plan, contender, seed) for seed in plan.seeds)
    return next((read_facts(folder).flops_per_token for folder in folders if (folder / "run.json").exists()), None)


def choose_size(contender: Planned, data: Any, plan: Plan) -> Matched:
    """The contender's settings with its widths chosen; what sees a bounded past sees one training window of it."""
    name, model = contender.config.model_name, dict(contender.model)
    if "n_context" in plan.train and "max_context" in contender.config.model.to_dict():
        model.setdefault("max_context", plan.train["n_context"])

    def count(config: Settings) -> int:
        # Only what has a gradient is counted this way.
        task = cast(gradient.GradientTask, plan.task)
        outline = gradient.outline(task, replace(contender.config, model=config), data)
        if plan.match == "non-embedding":
            return count_non_embedding(outline)
        return sum(p.numel() for p in outline.parameters())

    if plan.n_parameters is not None:
        if not plan.is_of_old_version:
            model = with_depth(name, model, plan.n_parameters)
        return match_width(name, model, plan.n_parameters, count)
    if contender.is_counted:
        return Matched(contender.config.model, None, "")
    return Matched(contender.config.model, count(contender.config.model), "")


def _limit(plan: Plan, sized: Sized) -> dict[str, Any]:
    """What the budget sets of `train`: batches of one size and the same budget for every contender.

    Each reads in the order that suits it: models that carry their state from window to window in that of the text, the
    others in random order. Transformers that were made to read in order were worse by 0.1 bits per byte.
    """
    limits: dict[str, Any] = {"max_tokens": plan.budget.max_tokens(sized.cost), "max_seconds": plan.budget.seconds}
    if plan.is_of_old_version and "n_context" in plan.train:
        limits["order"] = "stream"
    if limits["max_tokens"] is None and limits["max_seconds"] is None:  # FLOPs do not limit counting: count it all
        limits["max_epochs"] = 1.0
    return limits | _plan_evaluations(plan, sized.rehearsal, sized.cost)


def _plan_evaluations(plan: Plan, rehearsal: Rehearsal, cost: float) -> dict[str, int]:
    """How often to evaluate and on how much, from a guess of how far the budget reaches.

    A point costs a third of training on as many tokens, so all points together cost about a third of the training.
    """
    tokens_per_step = rehearsal.tokens_per_step
    if "n_context" in plan.train:
        tokens_per_step = plan.train["n_batch"] * plan.train["n_context"]
    # Twice the parameters forward, as much again twice for the way back: the same for all that are matched.
    flops_per_token = cost if plan.n_parameters is None else 6.0 * plan.n_parameters
    device = pick_device(plan.runtime.device).type
    rate = FLOPS_PER_SECOND.get(device, 1e10) * ((os.cpu_count() or 1) if device == "cpu" else 1)
    guesses = []
    if (seconds := plan.budget.seconds) is not None:
        guesses.append(seconds * STEPS_PER_SECOND * tokens_per_step)
        guesses += [seconds * rate / flops_per_token] if flops_per_token else []  # counting makes no updates
    if (tokens := plan.budget.max_tokens(flops_per_token)) is not None:
        guesses.append(tokens)
    tokens_guess = min(guesses, default=rehearsal.n_units["train"])
    every = max(1, round(tokens_guess / tokens_per_step / N_EVALUATIONS))
    fewest, most = EVAL_TOKENS
    return {"eval_every": every, "max_eval_tokens": int(min(most, max(fewest, tokens_guess / N_EVALUATIONS)))}


def _with_limits(plan: Plan, sized: Sized, seed: int, **more: Any) -> RunConfig:
    """The complete config of one run, as its folder holds it."""
    config = _with_train(sized.config, plan.train | _limit(plan, sized) | more)
    return plan.task.complete(replace(config, seed=seed))


def _with_train(config: RunConfig, train: Mapping[str, Any]) -> RunConfig:
    """The config with these settings of `train`, less those that do nothing for its model."""
    used = {name: value for name, value in train.items() if f"train.{name}" not in config.unused}
    return config.with_section("train", TrainConfig.from_dict(used, "train"))


def _folder_of(plan: Plan, contender: Planned, seed: int) -> Path:
    return plan.out / "runs" / contender.folder(seed)


def _begin(name: str, sized: Sized | Failure, plan: Plan) -> Entry:
    """The contender before any of its seeds is trained."""
    contender = next(c for c in plan.contenders if c.name == name)
    config = {**contender.config.to_dict(), "model": {"name": contender.config.model_name, **contender.model}}
    if isinstance(sized, Failure):
        return Entry(name, [], [sized], config=config)
    return Entry(name, [], [], sized.model.note, config=config)


def _train_together(
    plan: Plan, sized: Mapping[str, Sized | Failure], n_jobs: int, reporter: Reporter, locks: Sequence[int]
) -> None:
    """Train what has gradients in processes of its own; one that fails there is tried again alone, afterwards."""
    jobs = []
    for contender, seed in plan.trainings():
        found, folder = sized[contender.name], _folder_of(plan, contender, seed)
        if isinstance(found, Sized) and not contender.is_counted and not is_finished(folder):
            config = _check_folder(folder, _with_limits(plan, found, seed))
            jobs.append(plan_training(config, folder, found.rehearsal.memory, n_jobs))
    if jobs:
        check_room(jobs, n_jobs, pick_device(plan.runtime.device))
        reporter.note(f"{len(jobs)} trainings, {n_jobs} at a time; what each says is in {plan.out / 'logs'}")
        run_jobs(jobs, n_jobs, plan.out / "logs", reporter.note, locks)


def _check_folder(folder: Path, config: RunConfig) -> RunConfig:
    """The config to train in a folder with; refused where it holds files and no run, or a run of another config.

    A run that was begun goes on with as much evaluated as before: for `--seconds` another machine guesses otherwise.
    """
    if not (folder / CONFIG).exists():
        try:
            check_free(folder)
        except RegardError:
            raise RegardError(
                f"'{folder}' holds files, and no run that this comparison began. Move them, or choose another --out."
                f"{say_what_to_remove(folder)}"
            ) from None
        return config
    now, then = (each.section_or_none("train", TrainConfig) for each in (config, load_config(folder / CONFIG)))
    if now is not None and then is not None:
        config = config.with_section("train", now.replace(max_eval_tokens=then.max_eval_tokens))
    check_same(folder, config)
    return config


def _train_seed(entry: Entry, sized: Sized, config: RunConfig, plan: Plan, reporter: Reporter) -> None:
    """Train, or go on training, the run in `OUT/runs/NAME-seedK`; it or its failure becomes part of the entry."""
    seed, folder = config.seed, _folder_of(plan, sized.contender, config.seed)
    config = _check_folder(folder, config)
    measured = plan.out / "results" / f"{folder.name}.json"  # which version 0.1.0 wrote of a run that was finished
    if is_finished(folder) or (measured.exists() and (folder / MODEL).exists()):
        entry.runs.append(open_run(folder, folder.name))
        return
    size = "" if sized.model.n_parameters is None else f", {count_text(sized.model.n_parameters)} parameters"
    reporter.note(f"{entry.name}, seed {seed}{size}")
    is_begun = (folder / CONFIG).exists()
    try:
        engine.train(config, folder, resume=is_begun, is_tested=False, reporter=reporter)
        entry.runs.append(open_run(folder, folder.name))
    except InterruptedRunError:
        raise
    except Exception as error:  # one contender that fails must not cost the others' hours
        entry.failures.append(describe_failure(error, folder.name, seed, plan.out))
        reporter.note(f"{entry.name}, seed {seed}, failed: {entry.failures[-1].reason}")


def _count_same_tokens(
    entries: Mapping[str, Entry], sized: Mapping[str, Sized | Failure], plan: Plan, reporter: Reporter
) -> list[Entry]:
    """All entries, and after each that counted more text than the others read, one that counts as much as they do."""
    read = [mean(run.spent("tokens") for run in entry.runs) for entry in entries.values() if _is_descended(entry)]
    listed = []
    for name, entry in entries.items():
        listed.append(entry)
        found = sized[name]
        if not read or not isinstance(found, Sized) or not found.contender.is_counted or not entry.runs:
            continue
        n_read, n_counted = round(median(read)), entry.runs[0].spent("tokens")
        if n_read >= n_counted:
            continue
        entry.size_note = f"counts {count_text(n_counted)} tokens, while the others read {count_text(n_read)}"
        twin = replace(found.contender, name=name + SAME_TOKENS)
        same = replace(_begin(name, found, plan), name=twin.name)
        same.size_note = f"counts the first {count_text(n_read)} tokens, as many as the others read (median)"
        config = _with_limits(plan, found, plan.seeds[0], max_tokens=n_read)
        _train_seed(same, replace(found, contender=twin), config, plan, reporter)
        listed.append(same)
    return listed


def _is_descended(entry: Entry) -> bool:
    return bool(entry.runs) and entry.runs[0].has_seeds
