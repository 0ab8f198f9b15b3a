"""The complete description of a run: YAML in, `--set a.b=c` on top, every default written out again.

    task: language-model   # what the run is for; left out, it follows from the model and the data
    seed: 0
    start_from: null       # or a folder: a run, or a Hugging Face GPT-2, whose model, tokenizer and weights are taken
    data: {train: my.txt}
    tokenizer: {kind: bpe, vocab_size: 4096}
    model: {name: lstm, d_model: 256, n_layers: 2}
    optimizer: ...   schedule: ...   train: ...   runtime: ...   checkpoint: ...

Each section is the config class of the room it belongs to; unknown keys are refused with the nearest valid name. Which
sections there are, and of which class `data` is, the task says: `regard.tasks.table.build_config` puts it together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml

from regard.data.recipes import is_recipe
from regard.errors import RegardError, suggest_path
from regard.settings import Settings
from regard.text.config import TokenizerConfig
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.untrusted.small_files import MAX_NOTE, parse_yaml, read_bytes
from regard.untrusted.values import quote

Section = TypeVar("Section", bound=Settings)

COMMON: dict[str, type[Settings]] = {
    "tokenizer": TokenizerConfig,
    "optimizer": OptimizerConfig,
    "schedule": ScheduleConfig,
    "train": TrainConfig,
    "runtime": RuntimeConfig,
    "checkpoint": CheckpointConfig,
}
"""Sections that every task has. `data` is the task's own, and so is `model`, whose class depends on `model.name`."""

LAST = ("optimizer", "schedule", "train", "runtime", "checkpoint")
"""A reader wants to know these last: how it is trained."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """All that decides what a run computes. `sections` are all but `model`, by name."""

    task: str
    seed: int
    model_name: str
    model: Settings
    sections: Mapping[str, Settings | None]
    folders: Mapping[str, str | None] = field(default_factory=dict)
    """What the run starts from: `start_from`, `decoder_from` or `encoder_from`, whichever its task has."""
    unused: Mapping[str, str] = field(default_factory=dict)
    """Settings that other tasks have and that do nothing here, as `section` or `section.key`, and why."""

    def section(self, name: str, kind: type[Section]) -> Section:
        """A section of the class that its task says it has."""
        found = self.sections[name]
        assert isinstance(found, kind), f"the task {self.task} has {name} of another class"
        return found

    def section_or_none(self, name: str, kind: type[Section]) -> Section | None:
        return None if self.sections.get(name) is None else self.section(name, kind)

    @property
    def data(self) -> Settings:
        return self.section("data", Settings)

    @property
    def tokenizer(self) -> TokenizerConfig:
        return self.section("tokenizer", TokenizerConfig)

    @property
    def optimizer(self) -> OptimizerConfig:
        return self.section("optimizer", OptimizerConfig)

    @property
    def schedule(self) -> ScheduleConfig:
        return self.section("schedule", ScheduleConfig)

    @property
    def train(self) -> TrainConfig:
        return self.section("train", TrainConfig)

    @property
    def runtime(self) -> RuntimeConfig:
        return self.section("runtime", RuntimeConfig)

    @property
    def checkpoint(self) -> CheckpointConfig:
        return self.section("checkpoint", CheckpointConfig)

    def with_section(self, name: str, section: Settings | None) -> Self:
        return replace(self, sections={**self.sections, name: section})

    def take_open(self, begun: RunConfig) -> Self:
        """The config with what its data, words, head and optimizer leave open as the run that was begun has it."""
        config = self
        for name in ("data", "words", "head", "optimizer"):
            own, theirs = self.sections.get(name), begun.sections.get(name)
            if own is not None and theirs is not None:
                config = config.with_section(name, own.take_open(theirs))
        return config

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the order a reader would want them, every default written out, without what is unused."""
        whole: dict[str, Any] = {"task": self.task, "seed": self.seed, **self.folders}
        whole |= {name: self._plain(name) for name in self.sections if name not in LAST}
        whole["model"] = {"name": self.model_name, **self.model.to_dict()}
        return whole | {name: self._plain(name) for name in LAST if name not in self.unused}

    def _plain(self, name: str) -> dict[str, Any] | None:
        section = self.sections[name]
        if section is None:
            return None
        return {key: value for key, value in section.to_dict().items() if f"{name}.{key}" not in self.unused}

    def to_yaml(self) -> str:
        """Ends with YAML's own end mark, by which a file that was cut short is told from a whole one."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True, width=110, explicit_end=True)

    def notes(self) -> list[str]:
        """What is set and changes nothing, as sentences."""
        named = {"model": self.model, **self.sections}
        notes = [f"{name}.{note}" for name, section in named.items() if section is not None for note in section.notes()]
        for key, why in self.unused.items():
            name, _, field_name = key.partition(".")
            section = self.sections[name]
            fields = [field_name] if field_name else [line.name for line in type(section).help()] if section else []
            changed = [f for f in fields if getattr(section, f) != type(section).help_of(f).default] if section else []
            notes += [f"{name}.{f} changes nothing: {why}." for f in changed]
        return notes


def folder_of(given: Mapping[str, Any], key: str) -> str | None:
    """The folder that a plain config starts from (`start_from`), or whose model its decoder begins as."""
    folder = given.get(key)
    if folder is not None and (not isinstance(folder, str) or not folder or "\0" in folder):
        raise RegardError(f"'{key}' must be a folder, a run's or a Hugging Face GPT-2's, or null, not {quote(folder)}.")
    return folder


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; what is wrong with it, and where, if it is none."""
    try:
        text = read_bytes(path, MAX_NOTE).decode("utf-8")
    except FileNotFoundError:
        shipped = f" It comes with Regard: regard recipes {path.stem} --copy {path}" if is_recipe(path) else ""
        raise RegardError(f"There is no file '{path}'.{shipped or suggest_path(path)}") from None
    except IsADirectoryError:
        raise RegardError(
            f"'{path}' is a folder, not a YAML recipe. Train on a folder of texts with --data {path}, go on with a run "
            f"with --resume --out {path}."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"'{path}' cannot be read as a YAML recipe: {error}.") from None
    try:
        value = parse_yaml(text)
    except ValueError as error:
        raise RegardError(f"'{path}' is not valid YAML{error}.") from None
    if value is None:
        raise RegardError(f"'{path}' is empty. Write keys and values such as data: {{train: my.txt}} into it.")
    if not isinstance(value, dict):
        raise RegardError(
            f"'{path}' must hold a mapping of keys to values (seed, data, model, ...), not {quote(value, 60)}."
        )
    return value


def with_settings(
    given: Mapping[str, Any], assignments: Sequence[str], example: str = "model.d_model=256 or seed=1"
) -> dict[str, Any]:
    """A copy of the plain config with `a.b=c` assignments laid on top; values are read as YAML.

    `example` is shown in the error about an assignment without a value.

    >>> with_settings({"model": {"name": "lstm"}}, ["model.n_layers=2", "seed=7"])
    {'model': {'name': 'lstm', 'n_layers': 2}, 'seed': 7}
    """
    result = {k: dict(v) if isinstance(v, Mapping) else v for k, v in given.items()}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys) or len(keys) > 2:
            raise RegardError(f"A setting is KEY=VALUE such as {example}, not {quote(assignment)}.")
        try:
            value = parse_yaml(text)
        except ValueError as error:
            raise RegardError(
                f"The value in the setting {assignment:.80} is not valid YAML{error}; quote it."
            ) from None
        if len(keys) == 1:
            result[keys[0]] = value
            continue
        section = result[keys[0]] = {} if result.get(keys[0]) is None else result[keys[0]]
        if not isinstance(section, dict):
            raise RegardError(f"The setting {assignment:.80}: '{keys[0]}' is a single value and has no keys inside it.")
        section[keys[1]] = value
    return result


def mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of a plain config; empty where it is not there."""
    section = given.get(name)
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        form = {"model": "name", "data": "train"}.get(name) if isinstance(section, str) else None
        example = f" Write it as {name}: {{{form}: {section:.80}}}." if form else ""
        raise RegardError(f"'{name}' must be a mapping of keys to values, not {quote(section)}.{example}")
    return section
