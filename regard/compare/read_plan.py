"""A comparison that can be trained, read from names and options, or from a YAML file.

    contenders:
      ngram:
      small-lstm: {model: {name: lstm, n_layers: 1}, optimizer: {lr: 0.003}}
      characters: {model: {name: transformer}, tokenizer: {kind: char}}
    data: {train: my.txt}
    budget: 1e13flops
    params: 1M
    seeds: 3

A contender may have its own model, tokenizers, optimizer and schedule. Data, batch, context and budget are the same for
all: they are what makes it a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.compare.budget import Budget, parse_budget
from regard.compare.plan import MATCHES, OWN, SHARED, Plan, Planned
from regard.config import read_yaml
from regard.data.config import OF_ONE_SOURCE
from regard.errors import RegardError, nearest, suggest_path
from regard.models.table import MODELS, model_config
from regard.run.initial_weights import apply_start
from regard.tasks.table import TASKS, build_config, choose_task, task_name, task_of
from regard.tasks.task import Task
from regard.text.config import KINDS
from regard.training.config import RuntimeConfig, TrainConfig
from regard.training.device import pick_device
from regard.untrusted.fields import FieldError, decode_fields
from regard.untrusted.values import quote

KEYS = ("task", "contenders", "budget", "seconds", "params", "match", "seeds", "prompt", "out", "train", *SHARED, *OWN)
CONTENDER_KEYS = ("model", "encoder_from", *OWN)
TRAIN_KEYS = ("n_batch", "n_context", "n_accumulate")
DEFAULT_BUDGET = "1min"
DEFAULT_SEEDS = 3
MAX_SEEDS = 10_000
MAX_PARAMETERS = 10**11


def read_plan(
    contenders: Sequence[str | Path] | str | Path | Mapping[str, Any],
    *,
    data: str | Sequence[str] | None = None,
    budget: str | None = None,
    seconds: float | None = None,
    params: str | int | None = None,
    match: str | None = None,
    seeds: int | Sequence[int] | None = None,
    tokenizer: str | None = None,
    prompt: str | None = None,
    task: str | None = None,
    out: str | Path | None = None,
) -> Plan:
    """Read and check a whole comparison. What is given by argument lies on top of what the YAML says."""
    given = _read_given(contenders)
    options = {"task": task, "params": params, "match": match, "seeds": seeds, "prompt": prompt, "out": out}
    given.update({k: v for k, v in options.items() if v is not None})
    if budget is not None or seconds is not None:  # either lies on top of both
        given.update(budget=budget, seconds=seconds)
    if tokenizer is not None:
        given["tokenizer"] = _read_tokenizer(tokenizer)
    for key in given:
        if key == "model":
            raise RegardError(
                "'model' belongs in the recipe of one run, which `regard train FILE` trains. A comparison has "
                "contenders: [ngram, lstm]"
            )
        if key not in KEYS:
            raise RegardError(f"Unknown key '{key}'.{nearest(str(key), KEYS)} Allowed here: {', '.join(KEYS)}.")
    sections = _read_contenders(given)
    chosen_task = _check_one_task(sections) if given.get("task") is None else TASKS[task_name(given["task"])]
    given["data"] = _read_data(given.get("data"), data, chosen_task)
    limits = _read_budget(given.get("budget"), given.get("seconds"))
    runtime = RuntimeConfig.from_dict(_mapping(given.get("runtime"), "runtime"), "runtime")
    given["runtime"] = runtime.to_dict()
    chosen = tuple(_configure(name, section, given) for name, section in sections.items())
    made_task = task_of(chosen[0].config)
    _check_task(made_task, chosen[0].config.model_name, given.get("prompt"))
    matched = given.get("match") or "total"
    n_parameters = _read_size(given.get("params"), limits, matched, made_task.comparing.n_parameters)
    n_asked = params if limits.n_parameters is None else limits.n_parameters
    folder = Path(_read_text(given, "out") or Path("compare") / _short_name(given["data"]))
    return Plan(
        contenders=chosen,
        budget=limits.with_stop(n_parameters or 0),
        is_budget_given=given.get("budget") is not None or given.get("seconds") is not None,
        n_parameters=n_parameters,
        match=matched,
        seeds=_read_seeds(given.get("seeds")),
        prompt=_read_text(given, "prompt"),
        out=folder,
        train=_read_train(given.get("train"), made_task.comparing.train.get(pick_device(runtime.device).type, {})),
        has_task=given.get("task") is not None,
        asked=contenders if isinstance(contenders, Mapping) else list_names(contenders),
        options=_write_options({"data": data, "tokenizer": tokenizer, **options, "params": n_asked}),
    )


def _check_task(task: Task, name: str, prompt: Any) -> None:
    """Refuse models that cannot be trained to a budget, and a prompt for what goes on with none."""
    if prompt is not None and task.comparing.searches:
        raise RegardError(f"'prompt' is what language models go on with, and the task is {task.name}: leave it out.")
    if not task.comparing.has_budget:
        raise RegardError(
            f"A run that {task.summary} is not trained under a budget that others share. Train each by itself "
            f"(regard train {name} --data my.txt --out runs/{name}) and name the runs: regard compare runs/{name} ..."
        )


def _read_given(contenders: Sequence[str | Path] | str | Path | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(contenders, Mapping):
        return dict(contenders)
    names = list_names(contenders)
    recipes = [n for n in names if n.endswith((".yaml", ".yml"))]
    if recipes and len(names) > 1:
        raise RegardError(f"Give model names or one YAML file, not both: {' '.join(names)}.")
    return read_yaml(Path(recipes[0])) if recipes else {"contenders": names}


def list_names(contenders: Any) -> list[str]:
    """One name or path, or several, as texts."""
    return [str(contenders)] if isinstance(contenders, str | Path) else [str(name) for name in contenders]


def _read_contenders(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The sections of every contender by its name, the model's always among them."""
    wanted = given.get("contenders")
    if isinstance(wanted, list | tuple):
        repeated = [n for i, n in enumerate(wanted) if n in wanted[:i]]
        if repeated:
            raise RegardError(
                f"'{repeated[0]}' is named twice. To compare two settings of one model, name them in a YAML file."
            )
        wanted = dict(_name_contender(str(name), given) for name in wanted)
    if not isinstance(wanted, Mapping) or not wanted:
        raise RegardError("'contenders' must name at least one model, such as: ngram lstm transformer.")
    return {str(name): _read_contender(str(name), section) for name, section in wanted.items()}


def _name_contender(name: str, given: Mapping[str, Any]) -> tuple[str, dict[str, str] | None]:
    """A contender by its name; a folder, where a task is named, is the model that its texts are read by."""
    if "/" in name and not Path(name).exists():
        raise RegardError(
            f"There is no folder '{name}'.{suggest_path(Path(name), is_folder=True)} A contender is a model (regard "
            "models), a run folder or, for a task, a Hugging Face folder."
        )
    if given.get("task") is None or name in MODELS or not Path(name).is_dir():
        return name, None
    return Path(name).resolve().name, {"encoder_from": name}


def _read_contender(name: str, section: Any) -> dict[str, Any]:
    where = f"contenders.{name}"
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise RegardError(f"'{name}' cannot name a contender, since it names a folder: use letters, digits, - and _.")
    section = {} if section is None else section
    if not isinstance(section, Mapping):
        raise RegardError(f"'{where}' must be a mapping with {', '.join(CONTENDER_KEYS)}, not {quote(section)}.")
    for key in section:
        if key not in CONTENDER_KEYS:
            raise RegardError(
                f"Unknown key '{where}.{key}'.{nearest(str(key), CONTENDER_KEYS)} "
                f"Allowed here: {', '.join(CONTENDER_KEYS)}; all else is the same for every contender."
            )
    if section.get("encoder_from") is not None:
        return {**apply_start({**section, "encoder_from": str(section["encoder_from"])}, None)}
    model = section.get("model")
    model = {"name": model} if isinstance(model, str) else _mapping(model, f"{where}.model")
    model = {"name": str(model.pop("name", name)), **model}
    settings = {key: value for key, value in model.items() if key != "name"}
    model_config(model["name"], settings, f"{where}.model")  # refused now, not after an hour
    return {**section, "model": model}


def _check_one_task(sections: Mapping[str, Mapping[str, Any]]) -> Task:
    """The task of all contenders, as far as it is known before the data are."""
    models = [section["model"] for section in sections.values()]
    tasks = [choose_task({"model": model}) for model in models]
    for model, task in zip(models, tasks, strict=True):
        if task.name != tasks[0].name:
            raise RegardError(
                f"{models[0]['name']} {tasks[0].summary} and {model['name']} {task.summary}: only models of one "
                "task can be compared. Leave one of them out."
            )
    return tasks[0]


def _configure(name: str, section: Mapping[str, Any], given: Mapping[str, Any]) -> Planned:
    """The contender's complete config, but for its widths, its seed and what the budget sets."""
    where, whole = f"contenders.{name}", {key: given[key] for key in SHARED if given.get(key) is not None}
    for key in OWN:
        shared, own = given.get(key), section.get(key)
        if key.endswith("tokenizer"):  # of which a part means nothing
            chosen = shared if own is None else own
            if chosen is not None:
                whole[key] = _mapping(chosen, key if own is None else f"{where}.{key}")
        elif shared is not None or own is not None:
            whole[key] = {**_mapping(shared, key), **_mapping(own, f"{where}.{key}")}
    whole |= {
        key: value
        for key, value in (("task", given.get("task")), ("encoder_from", section.get("encoder_from")))
        if value
    }
    config = build_config({**whole, "model": section["model"]})
    settings = config.model.to_dict()
    return Planned(name=name, model={k: settings[k] for k in section["model"] if k != "name"}, config=config)


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str) and where.endswith("tokenizer"):
        return _read_tokenizer(value)
    if not isinstance(value, Mapping):
        raise RegardError(f"'{where}' must be a mapping of keys to values, not {quote(value)}.")
    return dict(value)


def _read_tokenizer(text: str) -> dict[str, Any]:
    """`bpe:8000` is a kind and a vocabulary size."""
    kind, colon, size = text.partition(":")
    if kind not in KINDS or (colon and not size.isdigit()):
        raise RegardError(
            f"A tokenizer is one of {', '.join(KINDS)}, with a size if need be (bpe:8000), not '{text}'."
            f"{nearest(kind, KINDS)}"
        )
    if colon:
        return {"kind": kind, "vocab_size": int(size)}
    return {"kind": kind} if kind in ("bpe", "wordpiece") else {"kind": kind, "vocab_size": None}


def _read_data(section: Any, named: str | Sequence[str] | None, task: Task) -> dict[str, Any]:
    """The data section; sources that are `named` replace its own, and how they are read stays."""
    if named is not None:
        kept = section if isinstance(section, Mapping) else {}
        kept = {key: value for key, value in kept.items() if key not in OF_ONE_SOURCE}
        section = task.name_sources(kept, [named] if isinstance(named, str) else list(named))
    if section is None:
        raise RegardError("Say what to compare on: --data my.txt, or a built-in text such as --data python-docs.")
    if isinstance(section, str | list | tuple):
        section = task.name_sources({}, [section] if isinstance(section, str) else list(section))
    if not isinstance(section, Mapping):
        raise RegardError(
            f"'data' must be a path, a built-in name, a list of them, or a mapping, not {quote(section)}."
        )
    if "-" in _flatten(section.get("train")):
        raise RegardError(
            "Standard input can be read only once, and a comparison reads its data often: save it in a file."
        )
    return dict(section)


def _flatten(value: Any) -> list[str]:
    """Every name in nested lists."""
    if isinstance(value, list | tuple):
        return [name for inner in value for name in _flatten(inner)]
    return [value] if isinstance(value, str) else []


def _read_text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is None or isinstance(value, str | Path):
        return None if value is None else str(value)
    raise RegardError(f"'{key}' must be text, not {quote(value)}; put it in quotes.")


def _read_params(value: Any) -> int | None:
    if value is None:
        return None
    for text in (f"{value}params", str(value)):
        try:
            budget = parse_budget(text)
        except RegardError:
            continue
        if budget == Budget(n_parameters=budget.n_parameters) and (budget.n_parameters or 0) <= MAX_PARAMETERS:
            return budget.n_parameters
    raise RegardError(
        f"params must be a number of parameters such as 1M or 500k, {MAX_PARAMETERS:,} at most, not {quote(value)}."
    )


def _read_seeds(value: Any) -> tuple[int, ...]:
    seeds = DEFAULT_SEEDS if value is None else value
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= MAX_SEEDS:
        return tuple(range(seeds))
    chosen = tuple(seeds) if isinstance(seeds, list | tuple) else ()
    if chosen and all(type(s) is int and 0 <= s < 2**63 for s in chosen) and len(set(chosen)) == len(chosen):
        return chosen
    raise RegardError(
        f"seeds must be how many (1 to {MAX_SEEDS:,}) or a list of different whole numbers from 0 on, not "
        f"{quote(value)}."
    )


def _read_budget(value: Any, seconds: Any) -> Budget:
    """From words, and seconds of the clock; from limits by name, as a plan is written."""
    if isinstance(value, Mapping):
        try:
            return decode_fields(Budget, value)
        except FieldError as error:
            raise RegardError(f"The budget cannot be read: {error}.") from None
    if seconds is None:
        return parse_budget(str(value or DEFAULT_BUDGET))
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise RegardError(f"seconds must be a number such as 90, not {quote(seconds)}.")
    found = Budget() if value is None else parse_budget(str(value))
    if found.wished_seconds is not None or found.flops is not None:
        raise RegardError(f"seconds {seconds:g} and the budget '{value}' are two budgets: give one of them.")
    return replace(found, seconds=float(seconds))


def _read_size(params: Any, budget: Budget, match: Any, default: int | None) -> int | None:
    """The number of parameters that contenders are matched to; None: each is as it is configured."""
    if match not in MATCHES:
        raise RegardError(
            f"match must be one of {', '.join(MATCHES)}, not {quote(match)}.{nearest(str(match), MATCHES)}"
        )
    size = _read_params(params)
    if size is not None and budget.n_parameters not in (None, size):
        raise RegardError(f"params {size:,} and the budget '{budget}' ask for different sizes; give one of them.")
    size = size or budget.n_parameters
    if match == "none" and size is not None:
        raise RegardError(f"match none leaves every model its own size, and params asks for {size:,}: leave one out.")
    if match == "non-embedding" and size is None and default is None:
        raise RegardError("match non-embedding needs the number to match: give params, such as 1M.")
    return None if match == "none" else size or default


def _read_train(value: Any, default: Mapping[str, Any]) -> dict[str, Any]:
    section = {**default, **_mapping(value, "train")}
    for key in section:
        if key not in TRAIN_KEYS:
            raise RegardError(
                f"Unknown key 'train.{key}'.{nearest(str(key), TRAIN_KEYS)} Allowed in a comparison: "
                f"{', '.join(TRAIN_KEYS)}; the budget sets the rest."
            )
    checked = TrainConfig.from_dict(section, "train")
    return {key: getattr(checked, key) for key in section}


def _short_name(data: Mapping[str, Any]) -> str:
    first = (_flatten(data.get("train") or data.get("pictures")) or ["data"])[0]
    name = re.sub(r"[^\w.-]+", "-", Path(first).name or "text").strip("-.")
    return name.split(".")[0] or "text"


def _write_options(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of a command line, but for its budget and its folder."""
    sources, seeds = options["data"] or [], options["seeds"]
    words = [w for source in ([sources] if isinstance(sources, str) else sources) for w in ("--data", str(source))]
    shown = {key: options[key] for key in ("task", "params", "match", "prompt", "tokenizer")}
    shown["seeds"] = len(seeds) if isinstance(seeds, list | tuple) else seeds
    return (*words, *(w for key, value in shown.items() if value is not None for w in (f"--{key}", str(value))))
