"""What is to be compared: contenders, text, budget, seeds; from names and options, or from a YAML file.

    contenders:
      ngram:
      small-lstm: {model: {name: lstm, n_layers: 1}, optimizer: {lr: 0.003}}
      characters: {model: {name: transformer}, tokenizer: {kind: char}}
    data: {train: my.txt}
    budget: 2min
    params: 1M
    seeds: 3

A contender may have its own model, tokenizer, optimizer and schedule. Batch, context, order of the text and budget are
the same for all: they are what makes it a comparison.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.comparison.budget import Budget, count_text, duration_text, parse_budget
from regard.config import read_yaml
from regard.data.config import DataConfig
from regard.errors import RegardError, nearest
from regard.models.table import model_config, model_entry
from regard.text.config import KINDS, TokenizerConfig
from regard.training.config import OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig

KEYS = ("contenders", "data", "tokenizer", "budget", "params", "seeds", "prompt", "out",
        "optimizer", "schedule", "train", "runtime")  # fmt: skip
CONTENDER_KEYS = ("model", "tokenizer", "optimizer", "schedule")
TRAIN_KEYS = ("n_batch", "n_context", "n_accumulate")
DEFAULT_BUDGET = "2min"
DEFAULT_PARAMS = 1_000_000
DEFAULT_SEEDS = 3
# In a few minutes a CPU gets further by many small updates (an LSTM of 1M parameters in 15 s on two cores: 2.56 bits
# per byte with 8 x 64, 2.72 with 8 x 128); a GPU is hardly busy with so little.
DEFAULT_TRAIN = {"cpu": {"n_batch": 8, "n_context": 64}, "cuda": {"n_batch": 32, "n_context": 128}}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One row of the comparison, before its widths are chosen; `model` holds what the user set, nothing else."""

    name: str
    model_name: str
    model: dict[str, Any]
    tokenizer: TokenizerConfig
    optimizer: OptimizerConfig
    schedule: ScheduleConfig

    @property
    def is_counted(self) -> bool:
        return model_entry(self.model_name).is_counted


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A comparison that can be run."""

    contenders: tuple[Contender, ...]
    data: DataConfig
    budget: Budget
    n_parameters: int
    seeds: tuple[int, ...]
    prompt: str | None
    out: Path
    train: dict[str, Any]
    runtime: RuntimeConfig
    command: str

    @property
    def n_trainings(self) -> int:
        """Counting draws no random numbers, so that one seed says it all."""
        return sum(1 if c.is_counted else len(self.seeds) for c in self.contenders)

    def summary(self) -> str:
        """What is about to happen, in one line."""
        n = self.n_trainings
        size, seeds = count_text(self.n_parameters), len(self.seeds)
        words = f"{n} trainings: {len(self.contenders)} models of {size} parameters, {seeds} seeds, {self.budget} each"
        if self.budget.seconds is None:
            return f"{words}."
        return f"{words}; at most about {duration_text(1.5 * n * self.budget.seconds)}."

    def to_dict(self) -> dict[str, Any]:
        """Everything that decides what is measured: what resuming checks. `out` and the command are not in it."""
        return {
            "contenders": {
                c.name: {
                    "model": {"name": c.model_name, **c.model},
                    "tokenizer": c.tokenizer.to_dict(),
                    "optimizer": c.optimizer.to_dict(),
                    "schedule": c.schedule.to_dict(),
                }
                for c in self.contenders
            },
            "data": self.data.to_dict(),
            "budget": self.budget.to_dict(),
            "params": self.n_parameters,
            "seeds": list(self.seeds),
            "prompt": self.prompt,
            "train": self.train,
            "runtime": self.runtime.to_dict(),
        }


def comparison_plan(
    contenders: Sequence[str] | str | Path | Mapping[str, Any],
    *,
    data: str | Sequence[str] | None = None,
    budget: str | None = None,
    params: str | int | None = None,
    seeds: int | Sequence[int] | None = None,
    tokenizer: str | None = None,
    prompt: str | None = None,
    out: str | Path | None = None,
) -> Plan:
    """Read and check a whole comparison. What is given by argument lies on top of what the YAML says."""
    given = _given(contenders)
    options = {"budget": budget, "params": params, "seeds": seeds, "prompt": prompt, "out": out}
    given.update({k: v for k, v in options.items() if v is not None})
    if data is not None:
        section = given.get("data")
        kept = {k: v for k, v in section.items() if k not in ("valid", "test")} if isinstance(section, Mapping) else {}
        given["data"] = {**kept, "train": _one_or_many(data)}
    if tokenizer is not None:
        given["tokenizer"] = _tokenizer_words(tokenizer)
    for key in given:
        if key not in KEYS:
            raise RegardError(f"Unknown key '{key}'.{nearest(str(key), KEYS)} Allowed here: {', '.join(KEYS)}.")
    source = _data(given.get("data"))
    size = _params(given.get("params"))
    limits = parse_budget(str(given.get("budget") or DEFAULT_BUDGET))
    if size is not None and limits.n_parameters not in (None, size):
        raise RegardError(f"params {size:,} and the budget '{limits}' ask for different sizes; give one of them.")
    n_parameters = limits.n_parameters or size or DEFAULT_PARAMS
    chosen = _contenders(given)
    runtime = RuntimeConfig.from_dict(_mapping(given.get("runtime"), "runtime"), "runtime")
    folder = Path(_text(given, "out") or Path("compare") / _short_name(source))
    chosen_seeds = _seeds(given.get("seeds"))
    return Plan(
        contenders=chosen,
        data=source,
        budget=limits.with_stop(n_parameters),
        n_parameters=n_parameters,
        seeds=chosen_seeds,
        prompt=_text(given, "prompt"),
        out=folder,
        train=_train(given.get("train"), runtime),
        runtime=runtime,
        command=_command(contenders, {"data": data, "tokenizer": tokenizer, **options}, chosen_seeds, folder),
    )


def _given(contenders: Sequence[str] | str | Path | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(contenders, Mapping):
        return dict(contenders)
    names = [str(contenders)] if isinstance(contenders, str | Path) else [str(n) for n in contenders]
    recipes = [n for n in names if n.endswith((".yaml", ".yml"))]
    if recipes and len(names) > 1:
        raise RegardError(f"Give model names or one YAML file, not both: {' '.join(names)}.")
    return read_yaml(Path(recipes[0])) if recipes else {"contenders": names}


def _contenders(given: Mapping[str, Any]) -> tuple[Contender, ...]:
    wanted = given.get("contenders")
    if isinstance(wanted, list | tuple):
        repeated = [n for i, n in enumerate(wanted) if n in wanted[:i]]
        if repeated:
            raise RegardError(
                f"'{repeated[0]}' is named twice. To compare two settings of one model, name them in a YAML file."
            )
        wanted = dict.fromkeys(map(str, wanted))
    if not isinstance(wanted, Mapping) or not wanted:
        raise RegardError("'contenders' must name at least one model, such as: ngram lstm transformer.")
    return tuple(_contender(str(name), section, given) for name, section in wanted.items())


def _contender(name: str, section: Any, given: Mapping[str, Any]) -> Contender:
    where = f"contenders.{name}"
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise RegardError(f"'{name}' cannot name a contender, since it names a folder: use letters, digits, - and _.")
    section = {} if section is None else section
    if not isinstance(section, Mapping):
        raise RegardError(f"'{where}' must be a mapping with {', '.join(CONTENDER_KEYS)}, not {section!r}.")
    for key in section:
        if key not in CONTENDER_KEYS:
            raise RegardError(
                f"Unknown key '{where}.{key}'.{nearest(str(key), CONTENDER_KEYS)} "
                f"Allowed here: {', '.join(CONTENDER_KEYS)}; all else is the same for every contender."
            )
    model = section.get("model")
    model = {"name": model} if isinstance(model, str) else _mapping(model, f"{where}.model")
    model_name = str(model.pop("name", name))
    if "language-model" not in (tasks := model_entry(model_name).tasks):
        raise RegardError(
            f"{where}: {model_name} is for {' and '.join(tasks)}: only language models are compared by name. "
            "Train such models with regard train, and compare their finished runs: regard compare runs/one runs/two."
        )
    checked = model_config(model_name, model, f"{where}.model").to_dict()  # refused now, not after an hour

    def merged(key: str) -> dict[str, Any]:
        return {**_mapping(given.get(key), key), **_mapping(section.get(key), f"{where}.{key}")}

    own = section.get("tokenizer")
    tokenizer = _mapping(given.get("tokenizer"), "tokenizer") if own is None else _mapping(own, f"{where}.tokenizer")
    return Contender(
        name=name,
        model_name=model_name,
        model={key: checked[key] for key in model},
        tokenizer=TokenizerConfig.from_dict(tokenizer, "tokenizer" if own is None else f"{where}.tokenizer"),
        optimizer=OptimizerConfig.from_dict(merged("optimizer"), "optimizer"),
        schedule=ScheduleConfig.from_dict(merged("schedule"), "schedule"),
    )


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str) and where.endswith("tokenizer"):
        return _tokenizer_words(value)
    if not isinstance(value, Mapping):
        raise RegardError(f"'{where}' must be a mapping of keys to values, not {value!r}.")
    return dict(value)


def _tokenizer_words(text: str) -> dict[str, Any]:
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


def _data(value: Any) -> DataConfig:
    if value is None:
        raise RegardError("Say what to compare on: --data my.txt, or a built-in text such as --data python-docs.")
    if isinstance(value, str | list | tuple):
        value = {"train": _one_or_many(value)}
    if not isinstance(value, Mapping):
        raise RegardError(f"'data' must be a path, a built-in name, a list of them, or a mapping, not {value!r}.")
    data = DataConfig.from_dict(value, "data")
    sources = [data.train] if isinstance(data.train, str) else list(data.train)
    if "-" in sources:
        raise RegardError(
            "Standard input can be read only once, and a comparison reads its text often: save it in a file."
        )
    return data


def _one_or_many(source: Any) -> Any:
    """A list of one source is that source; anything else is left to be checked."""
    return source[0] if isinstance(source, list | tuple) and len(source) == 1 else source


def _text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is None or isinstance(value, str | Path):
        return None if value is None else str(value)
    raise RegardError(f"'{key}' must be text, not {value!r}; put it in quotes.")


def _params(value: Any) -> int | None:
    if value is None:
        return None
    for text in (f"{value}params", str(value)):
        try:
            budget = parse_budget(text)
        except RegardError:
            continue
        if budget == Budget(n_parameters=budget.n_parameters):
            return budget.n_parameters
    raise RegardError(f"params must be a number of parameters such as 1M or 500k, not {value!r}.")


def _seeds(value: Any) -> tuple[int, ...]:
    seeds = DEFAULT_SEEDS if value is None else value
    if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds >= 1:
        return tuple(range(seeds))
    chosen = tuple(seeds) if isinstance(seeds, list | tuple) else ()
    if chosen and all(type(s) is int and s >= 0 for s in chosen) and len(set(chosen)) == len(chosen):
        return chosen
    raise RegardError(f"seeds must be how many (at least 1) or a list of different whole numbers, not {value!r}.")


def _train(value: Any, runtime: RuntimeConfig) -> dict[str, Any]:
    from regard.training.device import pick_device

    section = {**DEFAULT_TRAIN[pick_device(runtime.device).type], **_mapping(value, "train")}
    for key in section:
        if key not in TRAIN_KEYS:
            raise RegardError(
                f"Unknown key 'train.{key}'.{nearest(str(key), TRAIN_KEYS)} Allowed in a comparison: "
                f"{', '.join(TRAIN_KEYS)}; the budget sets the rest."
            )
    checked = TrainConfig.from_dict(section, "train")
    return {key: getattr(checked, key) for key in section}


def _short_name(data: DataConfig) -> str:
    first = data.train if isinstance(data.train, str) else data.train[0]
    name = re.sub(r"[^\w.-]+", "-", Path(first).name or "text").strip("-.")
    return name.split(".")[0] or "text"


def _command(contenders: Any, options: Mapping[str, Any], seeds: tuple[int, ...], out: Path) -> str:
    """The command line that asks for this comparison again."""
    if isinstance(contenders, Mapping):
        return f"regard.compare({dict(contenders)!r})"
    names = [str(contenders)] if isinstance(contenders, str | Path) else [str(n) for n in contenders]
    words = ["regard", "compare", *names]
    sources = options["data"] or []
    words += [w for source in ([sources] if isinstance(sources, str) else sources) for w in ("--data", str(source))]
    is_recipe = names[0].endswith((".yaml", ".yml"))
    shown = {key: options[key] for key in ("budget", "params", "prompt")}
    shown["seeds"] = None if is_recipe and options["seeds"] is None else len(seeds)
    shown["tokenizer"] = options["tokenizer"]
    words += [w for key, value in shown.items() if value is not None for w in (f"--{key}", str(value))]
    return shlex.join([*words, "--out", str(out)])
