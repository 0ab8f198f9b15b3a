"""Contenders that are trained to be compared: one budget, the same data in the same order, every seed.

OUT/plan.yaml            what is compared; another plan in the same folder is refused
OUT/data.json            a fingerprint of the data for each contender; other data are refused too
OUT/runs/NAME-seedK/     an ordinary run folder each; what is finished is not trained again
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from regard.compare.contenders import Entry, FinishedRun, describe_failure, is_finished, open_run
from regard.compare.plan import Plan, Planned, read_plan
from regard.compare.result import Failure, Training
from regard.compare.width import Matched, match_width
from regard.config import RunConfig, read_yaml
from regard.errors import InterruptedRunError, RegardError
from regard.files import write_atomically
from regard.models.shapes import shapes_only
from regard.score.figures import count_text
from regard.settings import Settings
from regard.training.device import pick_device
from regard.training.progress import Reporter

if TYPE_CHECKING:
    from regard.text.learning import Progress

N_EVALUATIONS = 20  # points of a learning curve, about
EVAL_TOKENS = (2_048, 16_384)  # the fewest and the most tokens a point, as the budget allows
FLOPS_PER_SECOND = {"cpu": 1e10, "cuda": 1e13}  # of one core, of one GPU; only to guess how often to evaluate
STEPS_PER_SECOND = 100  # no more than this, however small the model

Drawing = Callable[[], AbstractContextManager["Progress | None"]]


@dataclass(frozen=True)
class Sized:
    """A contender whose widths are chosen, and the data it is trained on."""

    contender: Planned
    data: Any
    model: Matched

    def config(self, plan: Plan, seed: int) -> dict[str, Any]:
        """The run that `regard train` would make: same batches, same order and same budget for every contender."""
        given = _with_model(self.contender, self.model.config)
        train = dict(plan.train)
        cost = 3.0 * plan.job.flops_per_token(_build_config(given, train), self.data)
        train |= {"max_tokens": plan.budget.max_tokens(cost), "max_seconds": plan.budget.seconds}
        if "n_context" in train:  # windows of one text, which all read from its beginning to its end
            train["order"] = "stream"
        if train["max_tokens"] is None and train["max_seconds"] is None:  # FLOPs do not limit counting: count it all
            train["max_epochs"] = 1.0
        train |= self._evaluations(plan, _build_config(given, plan.train), cost)
        return {"seed": seed, **given, "train": train}

    def _evaluations(self, plan: Plan, config: RunConfig, cost: float) -> dict[str, int]:
        """How often to evaluate and on how much, from a guess of how far the budget reaches.

        A point costs a third of training on as many tokens, so all points together cost about a third of the training.
        """
        tokens_per_step = plan.job.tokens_per_step(config)
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


def train_contenders(plan: Plan, *, progress: Drawing, reporter: Reporter) -> tuple[list[Entry], Training]:
    """Train what is not finished yet. A contender that fails is reported and the others go on."""
    check_same_plan(plan)
    reporter.note(plan.summary())
    try:
        with progress() as draw:
            data = _prepare(plan, draw)
        _check_same_data(plan, data)
        entries = [_train_contender(contender, data[contender.name], plan, reporter) for contender in plan.contenders]
    except (KeyboardInterrupt, InterruptedRunError):
        trainings = list(plan.trainings())
        n_done = sum(is_finished(_folder_of(plan, contender, seed)) for contender, seed in trainings)
        raise InterruptedRunError(
            f"Stopped with {n_done} of {len(trainings)} trainings finished; all is saved. Go on with: {plan.command}"
        ) from None
    first = data[plan.contenders[0].name]
    source = plan.config.data.to_dict()
    named = source.get("train") or source.get("pictures")
    training = Training(
        data=f"{', '.join(named) if isinstance(named, list | tuple) else named}: {plan.job.describe(first)}",
        budget=str(plan.budget),
        n_parameters=plan.n_parameters,
        seeds=plan.seeds,
        batch=plan.job.describe_batch(_build_config(_with_model(plan.contenders[0], plan.config.model), plan.train)),
        seconds=0.0,
    )
    return entries, training


def check_same_plan(plan: Plan) -> None:
    """Remember the plan, or refuse a folder that holds another comparison or something else."""
    path, now = plan.out / "plan.yaml", _as_yaml(plan)
    if path.exists():
        before = yaml.safe_load(_as_yaml(_read_plan_before(plan.out)))
        for key, value in yaml.safe_load(now).items():
            if before.get(key) != value:
                raise RegardError(
                    f"'{plan.out}' holds another comparison: its {key} was {_shorten(before.get(key))}, and now is "
                    f"{_shorten(value)}. Choose another --out, or ask for the same again to go on with it."
                )
        return
    if plan.out.exists() and (not plan.out.is_dir() or any(plan.out.iterdir())):
        raise RegardError(f"'{plan.out}' is there already and holds no comparison; choose another --out.")
    write_atomically(path, now.encode())


def _read_plan_before(out: Path) -> Plan:
    """The plan that a folder was begun with, with every setting that has been added since."""
    try:
        return read_plan(read_yaml(out / "plan.yaml"))
    except RegardError as error:
        raise RegardError(
            f"{error} What '{out}' compares cannot be known any more; choose another --out, or remove that folder."
        ) from None


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
        config = contender.config
        key = repr((config.tokenizer, config.target_tokenizer))
        if key not in by_tokenizers:
            by_tokenizers[key] = plan.job.prepare(config, draw)
            plan.job.check_test_data(by_tokenizers[key])
        found[contender.name] = by_tokenizers[key]
    return found


def _check_same_data(plan: Plan, data: dict[str, Any]) -> None:
    """Remember the data themselves, or refuse to mix them with others: a path may hold new content."""
    path = plan.out / "data.json"
    old = plan.out / "text.json"  # what version 0.1.0 called it
    now = {name: prepared.fingerprint for name, prepared in data.items()}
    if not path.exists() and not old.exists():
        write_atomically(path, (json.dumps(now, indent=1) + "\n").encode())
        return
    path = path if path.exists() else old
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


def _folder_of(plan: Plan, contender: Planned, seed: int) -> Path:
    return plan.out / "runs" / f"{contender.name}-seed{seed}"


def _train_contender(contender: Planned, data: Any, plan: Plan, reporter: Reporter) -> Entry:
    """All seeds of one contender."""
    failures: list[Failure] = []
    try:
        sized = Sized(contender, data, choose_size(contender, data, plan))
    except RegardError as error:
        failures.append(Failure(seed=plan.seeds[0], reason=str(error)))
        return Entry(contender.name, [], failures, config=contender.config.to_dict())
    runs = []
    for seed in (seed for planned, seed in plan.trainings() if planned is contender):
        run = _train_seed(sized, seed, plan, reporter)
        (failures if isinstance(run, Failure) else runs).append(run)  # type: ignore[arg-type]
    config = {**contender.config.to_dict(), "model": {"name": contender.config.model_name, **contender.model}}
    return Entry(contender.name, runs, failures, sized.model.note, config)


def choose_size(contender: Planned, data: Any, plan: Plan) -> Matched:
    """The contender's settings with its widths chosen; what sees a bounded past sees one training window of it."""
    name, model = contender.config.model_name, dict(contender.model)
    if "n_context" in plan.train and "max_context" in contender.config.model.to_dict():
        model.setdefault("max_context", plan.train["n_context"])

    def count(config: Settings) -> int:
        with shapes_only():
            return int(plan.job.outline(contender.config.replace(model=config), data).n_parameters)

    if plan.n_parameters is not None:
        return match_width(name, model, plan.n_parameters, count)
    return Matched(contender.config.model, count(contender.config.model), "")


def _train_seed(sized: Sized, seed: int, plan: Plan, reporter: Reporter) -> FinishedRun | Failure:
    """Train, or go on training, the run in `OUT/runs/NAME-seedK`."""
    from regard import api  # until training has a room of its own below this one

    contender, folder = sized.contender, _folder_of(plan, sized.contender, seed)
    if is_finished(folder):
        return open_run(folder, folder.name)
    size = "" if sized.model.n_parameters is None else f", {count_text(sized.model.n_parameters)} parameters"
    reporter.note(f"{contender.name}, seed {seed}{size}")
    try:
        is_begun = (folder / "config.yaml").exists()
        api.train(sized.config(plan, seed), out=folder, resume=is_begun, is_tested=False, reporter=reporter)
        return open_run(folder, folder.name)
    except InterruptedRunError:
        raise
    except Exception as error:
        failure = describe_failure(error, folder.name, seed, plan.out)
        reporter.note(f"{contender.name}, seed {seed}, failed: {failure.reason}")
        return failure


def _with_model(contender: Planned, model: Settings) -> dict[str, Any]:
    """The contender's sections with these settings of its model."""
    whole = {name: part for name, part in contender.config.to_dict().items() if isinstance(part, dict)}
    for name in ("train", "checkpoint"):
        del whole[name]
    return whole | {"model": {"name": contender.config.model_name, **model.to_dict()}}


def _build_config(given: dict[str, Any], train: dict[str, Any]) -> RunConfig:
    return RunConfig.from_dict({**given, "train": train})
