"""Contenders that are trained to be compared: one budget, the same data in the same order, every seed.

OUT/plan.yaml            what is compared; another plan in the same folder is refused
OUT/data.json            a fingerprint of the data for each contender; other data are refused too
OUT/runs/NAME-seedK/     an ordinary run folder each; what is finished is not trained again
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from regard.compare.contenders import Entry, FinishedRun, describe_failure, is_finished, open_run
from regard.compare.plan import Plan, Planned, read_plan
from regard.compare.result import Failure, Training
from regard.compare.width import Matched, match_width
from regard.config import RunConfig, read_yaml
from regard.errors import InterruptedRunError, RegardError
from regard.files import write_atomically
from regard.run import engine
from regard.run.folder import check_same, read_facts
from regard.score.figures import count_text
from regard.settings import Settings
from regard.tasks import gradient
from regard.tasks.task import ProgressBar, Rehearsal
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
    """A contender whose widths are chosen, with the config of its runs but for their seed."""

    contender: Planned
    model: Matched
    config: RunConfig
    n_tokens: Mapping[str, int]
    """Of the splits train, valid and test."""


def train_contenders(plan: Plan, *, progress: ProgressBar, reporter: Reporter) -> tuple[list[Entry], Training]:
    """Train what is not finished yet. A contender that fails is reported and the others go on."""
    plan, reporter = _check_same_plan(plan), Once(reporter)  # what is noted of the data holds for all trainings
    reporter.note(plan.summary())
    try:
        with progress() as draw:
            data = _prepare(plan, draw)
        _check_same_data(plan, data)
        sized = [_size(contender, data[contender.name], plan) for contender in plan.contenders]
        entries = [
            _train(contender, found, plan, reporter) for contender, found in zip(plan.contenders, sized, strict=True)
        ]
    except (KeyboardInterrupt, InterruptedRunError):
        trainings = list(plan.trainings())
        n_done = sum(is_finished(_folder_of(plan, contender, seed)) for contender, seed in trainings)
        raise InterruptedRunError(
            f"Stopped with {n_done} of {len(trainings)} trainings finished; all is saved. Go on with: {plan.command}"
        ) from None
    n_tokens = next((found.n_tokens for found in sized if isinstance(found, Sized)), {})
    sizes = ", ".join(f"{count_text(n)} tokens {PURPOSE[split]}" for split, n in n_tokens.items())
    batch = ", ".join(f"{name} {value}" for name, value in plan.train.items())
    training = Training(
        data=f"{plan.task.describe_sources(plan.config)}: {sizes}",
        budget=str(plan.budget),
        n_parameters=plan.n_parameters,
        seeds=plan.seeds,
        batch=f"the same data in the same order and batches for every contender{f' ({batch})' if batch else ''}",
        seconds=0.0,
    )
    return entries, training


PURPOSE = {"train": "to train on", "valid": "to watch", "test": "to test on"}


def _check_same_plan(plan: Plan) -> Plan:
    """Remember the plan, or refuse a folder that holds another comparison or something else.

    Returns the plan; of a comparison that was begun before, with what its data leave open as it was then.
    """
    path = plan.out / "plan.yaml"
    if path.exists():
        begun = _read_plan_before(plan.out)
        plan = _with_data(plan, plan.config.data.take_open(begun.config.data))
        before = yaml.safe_load(_as_yaml(begun))
        for key, value in yaml.safe_load(_as_yaml(plan)).items():
            if before.get(key) != value:
                raise RegardError(
                    f"'{plan.out}' holds another comparison: its {key} was {_shorten(before.get(key))}, and now is "
                    f"{_shorten(value)}. Choose another --out, or ask for the same again to go on with it."
                )
        return plan
    if plan.out.exists() and (not plan.out.is_dir() or any(plan.out.iterdir())):
        raise RegardError(f"'{plan.out}' is there already and holds no comparison; choose another --out.")
    write_atomically(path, _as_yaml(plan).encode())
    return plan


def _read_plan_before(out: Path) -> Plan:
    """The plan that a folder was begun with, with every setting that has been added since."""
    try:
        given = read_yaml(out / "plan.yaml")
        plan = read_plan(given)
        return _with_data(plan, type(plan.config.data).from_complete(given["data"], "data"))
    except RegardError as error:
        raise RegardError(
            f"{error} What '{out}' compares cannot be known any more; choose another --out, or remove that folder."
        ) from None


def _with_data(plan: Plan, data: Settings) -> Plan:
    contenders = (replace(one, config=one.config.with_section("data", data)) for one in plan.contenders)
    return replace(plan, contenders=tuple(contenders))


def _as_yaml(plan: Plan) -> str:
    text: str = yaml.safe_dump(plan.to_dict(), sort_keys=False, allow_unicode=True)
    return text


def _shorten(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).replace("\n...", "").strip()
    return text if len(text) <= 160 else text[:157] + "..."


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


def _check_same_data(plan: Plan, data: Mapping[str, Any]) -> None:
    """Remember the data themselves, or refuse to mix them with others: a path may hold new content."""
    path = plan.out / "text.json"  # what version 0.1.0 called it
    path = path if path.exists() else plan.out / "data.json"
    now = {name: prepared.fingerprint for name, prepared in data.items()}
    if not path.exists():
        write_atomically(path, (json.dumps(now, indent=1) + "\n").encode())
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise RegardError(
            f"'{path}' is damaged, so that the data of this comparison are not known; choose another --out."
        ) from None
    if before != now:
        raise RegardError(
            f"'{plan.out}' was begun on other data: what 'data' names has changed since; choose another --out."
        )


def _size(contender: Planned, data: Any, plan: Plan) -> Sized | Failure:
    """The contender with its widths chosen and what its budget allows, or why it cannot be trained."""
    try:
        model = choose_size(contender, data, plan)
        config = _with_train(replace(contender.config, model=model.config), plan.train)
        rehearsal = plan.task.rehearse(config, data, None)
        if (charged := _read_charge(contender, plan)) is not None:
            rehearsal = replace(rehearsal, flops_per_token=charged)
        if not rehearsal.n_tokens["test"]:
            raise RegardError(
                "There is nothing to test on: the test split is empty. Name test data, or raise data.p_test."
            )
        return Sized(contender, model, _with_train(config, plan.train | _limit(plan, rehearsal)), rehearsal.n_tokens)
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
        return sum(p.numel() for p in outline.parameters())

    if plan.n_parameters is not None:
        return match_width(name, model, plan.n_parameters, count)
    return Matched(contender.config.model, count(contender.config.model), "")


def _limit(plan: Plan, rehearsal: Rehearsal) -> dict[str, Any]:
    """What the budget sets of `train`: the same batches, the same order and the same budget for every contender."""
    cost = 3.0 * rehearsal.flops_per_token  # forward once, backward costs twice that
    limits: dict[str, Any] = {"max_tokens": plan.budget.max_tokens(cost), "max_seconds": plan.budget.seconds}
    if "n_context" in plan.train:  # windows of one text, which all read from its beginning to its end
        limits["order"] = "stream"
    if limits["max_tokens"] is None and limits["max_seconds"] is None:  # FLOPs do not limit counting: count it all
        limits["max_epochs"] = 1.0
    return limits | _plan_evaluations(plan, rehearsal, cost)


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
        guesses += [seconds * rate / flops_per_token, seconds * STEPS_PER_SECOND * tokens_per_step]
    if (tokens := plan.budget.max_tokens(flops_per_token)) is not None:
        guesses.append(tokens)
    tokens_guess = min(guesses)
    every = max(1, round(tokens_guess / tokens_per_step / N_EVALUATIONS))
    fewest, most = EVAL_TOKENS
    return {"eval_every": every, "max_eval_tokens": int(min(most, max(fewest, tokens_guess / N_EVALUATIONS)))}


def _with_train(config: RunConfig, train: Mapping[str, Any]) -> RunConfig:
    """The config with these settings of `train`, less those that do nothing for its model."""
    used = {name: value for name, value in train.items() if f"train.{name}" not in config.unused}
    return config.with_section("train", TrainConfig.from_dict(used, "train"))


def _folder_of(plan: Plan, contender: Planned, seed: int) -> Path:
    return plan.out / "runs" / f"{contender.name}-seed{seed}"


def _train(contender: Planned, sized: Sized | Failure, plan: Plan, reporter: Reporter) -> Entry:
    """All seeds of one contender."""
    config = {**contender.config.to_dict(), "model": {"name": contender.config.model_name, **contender.model}}
    if isinstance(sized, Failure):
        return Entry(contender.name, [], [sized], config=config)
    entry = Entry(contender.name, [], [], sized.model.note, config)
    for seed in (seed for planned, seed in plan.trainings() if planned is contender):
        run = _train_seed(sized, seed, plan, reporter)
        if isinstance(run, Failure):
            entry.failures.append(run)
        else:
            entry.runs.append(run)
    return entry


def _train_seed(sized: Sized, seed: int, plan: Plan, reporter: Reporter) -> FinishedRun | Failure:
    """Train, or go on training, the run in `OUT/runs/NAME-seedK`."""
    contender, folder = sized.contender, _folder_of(plan, sized.contender, seed)
    measured = plan.out / "results" / f"{folder.name}.json"  # which version 0.1.0 wrote of a run that was finished
    if is_finished(folder) or (measured.exists() and (folder / "model.safetensors").exists()):
        return open_run(folder, folder.name)
    size = "" if sized.model.n_parameters is None else f", {count_text(sized.model.n_parameters)} parameters"
    reporter.note(f"{contender.name}, seed {seed}{size}")
    config, is_begun = replace(sized.config, seed=seed), (folder / "config.yaml").exists()
    try:
        if is_begun:
            check_same(folder, config)
        engine.train(config, folder, resume=is_begun, is_tested=False, reporter=reporter)
        return open_run(folder, folder.name)
    except InterruptedRunError:
        raise
    except Exception as error:  # one contender that fails must not cost the others' hours
        failure = describe_failure(error, folder.name, seed, plan.out)
        reporter.note(f"{contender.name}, seed {seed}, failed: {failure.reason}")
        return failure
