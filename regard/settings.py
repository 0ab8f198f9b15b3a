"""Frozen, documented, validated dataclasses: the form of every config in Regard.

A config class is written as

    @dataclass(frozen=True, kw_only=True)
    class WindowConfig(Settings):
        d_model: int = setting(128, "width of an embedding", low=1)

and then checks its own types, ranges and choices when it is built, refuses unknown keys with the nearest valid
name, and converts to and from plain dicts (what YAML holds). Its field docs are the command line's help.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any, ClassVar, Self, get_args, get_origin

from regard.errors import RegardError, nearest
from regard.untrusted.values import quote

COMMON_NAMES = {
    "optimizer.lr": ("learning_rate", "max_lr", "lr", "rate"),
    "optimizer.weight_decay": ("weight_decay", "wd", "l2"),
    "optimizer.max_grad_norm": ("max_grad_norm", "grad_clip", "clip", "clip_grad_norm", "gradient_clip_val"),
    "optimizer.name": ("optimizer", "optim"),
    "schedule.n_warmup": ("n_warmup", "warmup", "warmup_steps", "num_warmup_steps"),
    "schedule.name": ("schedule", "scheduler", "lr_scheduler", "lr_scheduler_type"),
    "train.n_batch": ("n_batch", "batch", "batch_size", "per_device_train_batch_size"),
    "train.n_context": ("n_context", "context", "context_length", "seq_len", "sequence_length", "block_size", "bptt"),
    "train.n_accumulate": ("n_accumulate", "accumulate", "gradient_accumulation_steps", "grad_accum"),
    "train.max_steps": ("max_steps", "steps", "n_steps", "num_steps", "max_iters", "iterations"),
    "train.max_epochs": ("max_epochs", "epochs", "n_epochs", "num_epochs", "num_train_epochs"),
    "train.max_tokens": ("n_tokens", "tokens"),
    "train.max_seconds": ("max_seconds", "seconds", "time_limit"),
    "train.eval_every": ("eval_every", "eval_steps", "eval_interval", "evaluate_every"),
    "train.patience": ("early_stopping", "early_stopping_patience"),
    "model.p_dropout": ("p_dropout", "dropout", "dropout_rate"),
    "model.d_model": ("d_model", "embedding_size", "embed_dim", "n_embd", "width"),
    "model.d_hidden": ("d_hidden", "hidden_size", "hidden_dim", "hidden"),
    "model.n_layers": ("n_layers", "layers", "num_layers", "n_layer", "depth"),
    "model.n_heads": ("n_heads", "heads", "num_heads", "n_head"),
    "tokenizer.vocab_size": ("vocab_size", "vocab"),
    "teaching.smoothing": ("label_smoothing",),
    "runtime.device": ("device", "gpu", "cuda"),
    "runtime.precision": ("precision", "dtype", "bf16", "fp16", "amp"),
    "runtime.n_threads": ("n_threads", "threads", "num_threads"),
    "runtime.is_compiled": ("compile", "compiled"),
    "checkpoint.every_steps": ("save_every", "save_steps", "checkpoint_every"),
    "checkpoint.log_every": ("log_every", "log_interval", "logging_steps"),
}
"""Settings of a run, and what other tools call them or where people look for them."""

MAX_INTEGER = 2**63 - 1
"""Of a setting that has no other limit: larger ones cannot be counted to."""


def setting(
    default: Any = MISSING,
    doc: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
) -> Any:
    """A config field: its default (leave out to make it required), what it means, and what it may be.

    `low` and `high` are inclusive and hold for every number in a tuple; None is always allowed where the annotation
    allows it.
    """
    metadata = {"doc": doc, "low": low, "high": high, "choices": tuple(choices) if choices else None}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class FieldHelp:
    """One line of a config's manual: `name: kind = default  doc`."""

    name: str
    kind: str
    default: Any
    doc: str


class _ValueError(RegardError):
    """A value that a field does not take; its text begins with the field's name."""


class Settings:
    """What every config dataclass can do. Subclass it directly, never deeper."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """Old names of fields, which recipes and run folders may still use, and their new names."""

    younger: ClassVar[Mapping[str, Any]] = {}
    """Fields that were added since, and what a complete config that does not name them was run with."""

    def __post_init__(self) -> None:
        hints = _hints(type(self))
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            value = _coerce(getattr(self, f.name), hints[f.name], f.name)
            _check_allowed(value, f.metadata, f.name)
            object.__setattr__(self, f.name, value)
        self.check()

    def check(self) -> None:
        """Rules between fields; raise RegardError where one is broken."""

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Build from plain values; `where` is the dotted path of this section, for error messages."""
        if not isinstance(given, Mapping):
            raise RegardError(f"{where or 'the config'} must be a mapping of keys to values, not {quote(given)}.")
        names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        given = cls._rename(given, where)
        for key in given:
            if key not in names:
                raise RegardError(
                    f"Unknown key '{_join_names(where, str(key))}'.{suggest_setting(str(key), names, where)} "
                    f"Allowed here: {', '.join(names)}."
                )
        required = [f.name for f in dataclasses.fields(cls) if f.default is MISSING]  # type: ignore[arg-type]
        for name in required:
            if name not in given:
                option = "; on the command line, --data" if where == "data" else ""
                raise RegardError(f"'{_join_names(where, name)}' is required: {cls.help_of(name).doc}{option}.")
        try:
            return cls(**given)
        except _ValueError as error:
            raise RegardError(_join_names(where, str(error))) from None

    @classmethod
    def from_complete(cls, written: Mapping[str, Any], where: str = "") -> Self:
        """Build from what `to_dict` of this or an earlier version gave: fields that it lacks have been added since."""
        return cls.from_dict({**cls.younger, **written} if isinstance(written, Mapping) else written, where)

    def take_open(self, begun: Settings) -> Self:
        """A copy in which values that are left open are those of `begun`, if that is of the same class.

        Open is `auto`, and null where a younger field is.
        """
        if type(begun) is not type(self):
            return self
        values = self.to_dict().items()
        is_open = {key: value == "auto" or (value is None and key in self.younger) for key, value in values}
        return self.replace(**{key: getattr(begun, key) for key in is_open if is_open[key]})

    @classmethod
    def _rename(cls, given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Give values the names that fields have now; an old name is logged once."""
        for old in cls.renamed.keys() & given.keys():
            _tell_renamed(_join_names(where, old), _join_names(where, cls.renamed[old]))
        return {cls.renamed.get(key, key): value for key, value in given.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, every default written out: what goes into YAML."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def notes(self) -> list[str]:
        """What is set and changes nothing, as sentences."""
        return []

    def fill_in(self) -> Self:
        """A copy in which fields that are null because others decide them are written out; most have none."""
        return self

    @classmethod
    def help(cls) -> Iterator[FieldHelp]:
        """The manual of this config, a line a field."""
        for f in dataclasses.fields(cls):  # type: ignore[arg-type]
            choices = f.metadata.get("choices")
            limits = _limits_text(f.metadata.get("low"), f.metadata.get("high"))
            kind = " | ".join(choices) if choices else _kind_text(_hints(cls)[f.name], limits)
            yield FieldHelp(f.name, kind, f.default, str(f.metadata.get("doc", "")))

    @classmethod
    def help_of(cls, name: str) -> FieldHelp:
        return next(line for line in cls.help() if line.name == name)


def suggest_setting(key: str, allowed: Sequence[str], where: str = "") -> str:
    """`" Did you mean 'optimizer.lr'?"` for a key that section `where` of a run's config does not have.

    >>> suggest_setting("learning_rate", ["n_batch"], "train"), suggest_setting("n_bach", ["n_batch"], "train")
    (" Did you mean 'optimizer.lr'?", " Did you mean 'train.n_batch'?")
    """
    sections = {name.partition(".")[0] for name in COMMON_NAMES} | {"", "data"}
    meant = [name for name, others in COMMON_NAMES.items() if key in others and where in sections]
    return f" Did you mean '{meant[0]}'?" if meant else nearest(key, allowed, _join_names(where, ""))


@functools.cache
def _tell_renamed(old: str, new: str) -> None:
    """Log that a setting was renamed, once in a process."""
    logging.getLogger("regard").warning(f"The setting {old} is now called {new}; the old name still works.")


def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _join_names(where: str, key: str) -> str:
    """
    >>> _join_names("train", "n_batch"), _join_names("", "seed")
    ('train.n_batch', 'seed')
    """
    return f"{where}.{key}" if where else key


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value.to_dict() if isinstance(value, Settings) else value


def _kind_text(hint: Any, limits: str = "") -> str:
    if get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_kind_text(h, limits) for h in get_args(hint))
    if get_origin(hint) is tuple:
        return f"list of {_kind_text(get_args(hint)[0], limits)}"
    names = {
        int: f"a whole number{limits}",
        float: f"a number{limits}",
        bool: "true or false",
        str: "text",
        type(None): "null",
    }
    return names.get(hint, getattr(hint, "__name__", str(hint)))


_NO = object()


def _coerce(value: Any, hint: Any, where: str) -> Any:
    result = _try(value, hint)
    if result is _NO:
        as_list = "" if _try([value], hint) is _NO else f" Write a list in brackets: [{value!s:.80}]."
        raise _ValueError(f"{where} must be {_kind_text(hint)}, not {quote(value)}.{as_list}")
    return result


def _try(value: Any, hint: Any) -> Any:
    """`value` as `hint`, or _NO. YAML reads 3e-4 as text and 1 as int, so numbers are met half-way; bools never are."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        exact = [h for h in get_args(hint) if isinstance(h, type) and type(value) is h]
        tries = (_try(value, h) for h in [*exact, *get_args(hint)])
        return next((t for t in tries if t is not _NO), _NO)
    if get_origin(hint) is tuple:
        return _try_tuple(value, get_args(hint))
    if hint is float and not isinstance(value, bool):
        try:
            return float(value) if isinstance(value, int | float | str) else _NO
        except (ValueError, OverflowError):
            return _NO
    if hint is int:
        return _try_int(value)
    return value if isinstance(value, hint) else _NO


def _try_int(value: Any) -> Any:
    if isinstance(value, bool):
        return _NO
    if isinstance(value, str):  # 5e6 in YAML
        value = _try(value, float)
    if isinstance(value, float):
        return int(value) if value.is_integer() else _NO
    return value if isinstance(value, int) else _NO


def _try_tuple(value: Any, inner: tuple[Any, ...]) -> Any:
    if not isinstance(value, list | tuple):
        return _NO
    if len(inner) == 2 and inner[1] is Ellipsis:
        inner = (inner[0],) * len(value)
    if len(inner) != len(value):
        return _NO
    items = tuple(_try(v, h) for v, h in zip(value, inner, strict=True))
    return _NO if any(i is _NO for i in items) else items


def _check_allowed(value: Any, metadata: Mapping[str, Any], name: str) -> None:
    low, high, choices = metadata.get("low"), metadata.get("high"), metadata.get("choices")
    for v in value if isinstance(value, tuple) else (value,):
        if v is None:
            continue
        if choices is not None and v not in choices:
            raise _ValueError(f"{name} must be one of {', '.join(choices)}, not {quote(v)}.{nearest(str(v), choices)}")
        if isinstance(v, str) and "\0" in v:  # which no name of a file may have
            raise _ValueError(f"{name} must not have the character NUL, as in {quote(v)}. Leave it out.")
        if isinstance(v, int | float) and not isinstance(v, bool):
            if isinstance(v, float) and not math.isfinite(v):
                raise _ValueError(f"{name} must be a finite number, not {'NaN' if math.isnan(v) else v}.")
            most = MAX_INTEGER if high is None and isinstance(v, int) and v > MAX_INTEGER else high
            if (low is not None and v < low) or (most is not None and v > most):
                raise _ValueError(f"{name} must be {_range_text(low, most)}, not {v}.")


def _limits_text(low: float | None, high: float | None) -> str:
    """
    >>> _limits_text(0, 2**63 - 1), _limits_text(0.5, None)
    (' from 0 to 2^63 - 1', ' from 0.5 on')
    """
    if low is not None and high is not None:
        return f" from {_number_text(low)} to {_number_text(high)}"
    if low is None and high is None:
        return ""
    return f" from {_number_text(low)} on" if low is not None else f" up to {_number_text(high)}"


def _range_text(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {_number_text(low)} and {_number_text(high)}"
    return f"at least {_number_text(low)}" if low is not None else f"at most {_number_text(high)}"


def _number_text(limit: float | None) -> str:
    assert limit is not None, "who asks has looked"
    if limit == MAX_INTEGER:
        return "2^63 - 1"
    return f"{limit:,.0f}" if 1e5 <= limit < 1e15 else f"{limit:g}"
