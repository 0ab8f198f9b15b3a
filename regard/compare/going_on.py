"""A comparison that goes on in the folder it was begun in: what may be asked for there, and what stays as it was.

OUT/plan.yaml    everything that decides what is measured
OUT/data.json    the fingerprint of every contender's data
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from regard.compare.budget import Budget
from regard.compare.place import check_inside
from regard.compare.plan import Plan, Planned
from regard.compare.read_plan import read_plan
from regard.config import RunConfig, read_yaml
from regard.data.known_sources import list_sources, list_starts
from regard.data.locks import LOCK
from regard.errors import RegardError
from regard.files import PARTIAL, write_atomically
from regard.report.comparison import check_drawn
from regard.training.config import OptimizerConfig
from regard.untrusted.small_files import MAX_NOTE, DamagedFileError, read_json


def go_on_with(plan: Plan) -> Plan:
    """The plan, with the budget that its folder was begun with; refused where the folder holds something else."""
    path = plan.out / "plan.yaml"
    if plan.out.is_dir():
        check_inside(plan.out)
    if path.exists():
        check_drawn(plan.out, "choose another --out")
        written, before = _read_plan_before(plan)
        plan = replace(plan, budget=_keep_budget(plan, before), is_of_old_version="match" not in written)
        begun = {contender.name: contender.config for contender in before.contenders}
        plan = _change(plan, lambda one: one.config.take_open(begun.get(one.name, one.config)))
        now = yaml.safe_load(as_yaml(plan))
        for key, value in yaml.safe_load(as_yaml(before)).items():
            if now.get(key) != value:
                raise RegardError(
                    f"'{plan.out}' holds another comparison: {_tell_change(key, value, now.get(key))}. "
                    "Choose another --out, or ask for the same again to go on with it."
                )
    elif plan.out.exists() and (not plan.out.is_dir() or any(_is_of_another(found) for found in plan.out.iterdir())):
        raise RegardError(f"'{plan.out}' is there already and holds no comparison; choose another --out.")
    return plan


def _is_of_another(found: Path) -> bool:
    """Whether something in a folder is neither a lock nor what a killed writer left."""
    return found.name != LOCK and not found.name.startswith(PARTIAL)


def _keep_budget(plan: Plan, before: Plan) -> Budget:
    """The folder's budget where none is asked for, or the same time, or the FLOPs that it became; else the plan's.

    In version 0.1.0 a time was one of the clock.
    """
    now, then = plan.budget, before.budget
    is_same_time = now.wished_seconds is not None and now.wished_seconds in (then.wished_seconds, then.seconds)
    is_same_work = now == replace(then, wished_seconds=None)
    return then if not plan.is_budget_given or is_same_time or is_same_work else now


def _read_plan_before(asked: Plan) -> tuple[dict[str, Any], Plan]:
    """What plan.yaml holds, and as a plan, with every setting that has been added since.

    Nothing is read that the plan that is asked for does not name too: the folder may come from elsewhere.
    """
    out = asked.out
    try:
        written = read_yaml(out / "plan.yaml")
        contenders = written.get("contenders")
        sections = [written.get("data"), *contenders.values()] if isinstance(contenders, dict) else [None]
        if not all(isinstance(section, dict) for section in sections):
            raise RegardError(f"'{out / 'plan.yaml'}' is no plan as `regard compare` writes it.")
    except RegardError as error:
        raise _say_unknown(out, error) from None
    _check_names(asked, written)
    try:
        plan = read_plan(written)
        return written, _change(plan, lambda one: _read_complete(one.config, written, one.name))
    except RegardError as error:
        raise _say_unknown(out, error) from None


def _say_unknown(out: Path, error: RegardError) -> RegardError:
    return RegardError(
        f"{error} What '{out}' compares cannot be known any more; choose another --out, or remove that folder."
    )


def _check_names(asked: Plan, written: Mapping[str, Any]) -> None:
    """Refuse a plan that names other files and folders than the one that is asked for, before any of them is opened."""
    plain = asked.to_dict()
    before = {"data": list(list_sources(written["data"])), "comparison": _list_read(written)}
    now = {"data": list(list_sources(plain["data"])), "comparison": _list_read(plain)}
    for name, section in written["contenders"].items():
        before[f"contender {name}"] = _list_read(section)
        now[f"contender {name}"] = _list_read(plain["contenders"].get(name, {}))
    for name, names in before.items():
        if names != now[name]:
            raise RegardError(
                f"'{asked.out}' holds another comparison: its {name} asks to read {_shorten(names)}, and now is asked "
                f"to read {_shorten(now[name])}. Choose another --out, or ask for the same again to go on with it."
            )


def _list_read(section: Mapping[str, Any]) -> list[Any]:
    """Every file and folder that a part of a plan names, beside its data."""
    tokenizers = [section.get(key) for key in ("tokenizer", "target_tokenizer")]
    paths = [tokenizer.get("path") for tokenizer in tokenizers if isinstance(tokenizer, dict)]
    return [*list_starts(section), *(path for path in paths if path is not None)]


def _change(plan: Plan, change: Callable[[Planned], RunConfig]) -> Plan:
    return replace(plan, contenders=tuple(replace(one, config=change(one)) for one in plan.contenders))


def _read_complete(config: RunConfig, written: Mapping[str, Any], name: str) -> RunConfig:
    """The config with sections of the plan that was written read as complete: what they lack is younger than it."""
    config = config.with_section("data", type(config.data).from_complete(written["data"], "data"))
    optimizer = written["contenders"][name].get("optimizer")
    return config if optimizer is None else config.with_section("optimizer", OptimizerConfig.from_complete(optimizer))


def as_yaml(plan: Plan) -> str:
    text: str = yaml.safe_dump(plan.to_dict(), sort_keys=False, allow_unicode=True)
    return text


def _tell_change(key: str, before: Any, now: Any) -> str:
    """How a comparison changed; of contenders their names, or the first section of one that has other settings."""
    if key == "contenders" and isinstance(now, dict):
        if set(before) != set(now):
            return f"its contenders were {', '.join(before)}, and now are {', '.join(now)}"
        name = next(name for name in before if before[name] != now[name])
        inside = next(part for part in before[name] | now[name] if before[name].get(part) != now[name].get(part))
        return _tell_change(f"{name}.{inside}", before[name].get(inside), now[name].get(inside))
    return f"its {key} was {_shorten(before)}, and now is {_shorten(now)}"


def _shorten(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).replace("\n...", "").strip()
    return text if len(text) <= 160 else text[:157] + "..."


def check_same_data(plan: Plan, data: Mapping[str, Any]) -> None:
    """Remember the data themselves, or refuse to mix them with others: a path may hold new content."""
    path = plan.out / "text.json"  # what version 0.1.0 called it
    path = path if path.exists() else plan.out / "data.json"
    now = {name: prepared.fingerprint for name, prepared in data.items()}
    if not path.exists():
        write_atomically(path, json.dumps(now, indent=1) + "\n")
        return
    try:
        before = read_json(path, MAX_NOTE)
    except DamagedFileError:
        raise RegardError(
            f"'{path}' is damaged, so that the data of this comparison are not known; choose another --out."
        ) from None
    if before != now:
        raise RegardError(
            f"'{plan.out}' was begun on other data: what 'data' names has changed since; choose another --out."
        )
