"""What a comparison found: the schema of `compare.json`, as plain dataclasses.

Everything that the table, the picture and the report show is in here, so that each can be drawn again later from the
file alone. `Comparison.to_dict()` and `Comparison.from_dict()` are inverses.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from regard.errors import RegardError
from regard.lens.views import AttentionView, CellView

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One evaluation on the validation text during training."""

    tokens: int
    flops: float
    seconds: float
    bits_per_byte: float


@dataclass(frozen=True, kw_only=True)
class SeedResult:
    """One contender trained once: what it cost, and its nats on every block of the test text."""

    seed: int
    run: str  # folder of the run, relative to the comparison's
    n_parameters: int
    block_nats: tuple[float, ...]
    n_test_tokens: int
    train_tokens: int
    flops: float
    seconds: float
    highest_lr: float | None  # None where nothing was descended
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A contender and seed that gave no score, and why."""

    seed: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """Means over seeds; `low` and `high` bound the 95% interval of bits_per_byte."""

    bits_per_byte: float
    low: float
    high: float
    perplexity_per_token: float
    train_tokens: float
    flops: float
    seconds: float
    tokens_per_second: float


@dataclass(frozen=True, kw_only=True)
class PositionPoint:
    """Loss where `n_bytes_before` bytes of the text have been seen (the middle of a bin)."""

    n_bytes_before: float
    bits_per_byte: float


@dataclass(frozen=True, kw_only=True)
class Span:
    """One token of the passage: its characters `[start, end)` and its surprise."""

    start: int
    end: int
    bits: float


@dataclass(frozen=True, kw_only=True)
class Views:
    """What one run shows of itself; empty where there is nothing to show."""

    sample: str = ""
    positions: tuple[PositionPoint, ...] = ()
    surprise: tuple[Span, ...] = ()
    attention: AttentionView | None = None
    cells: CellView | None = None


@dataclass(frozen=True, kw_only=True)
class TokenizerFacts:
    """Which tokens a contender saw. A lossy tokenizer's bits per byte are not comparable."""

    kind: str
    vocab_size: int
    is_lossless: bool
    hash: str


@dataclass(frozen=True, kw_only=True)
class ContenderResult:
    """One row of the ranking; `score` is None where every seed failed."""

    name: str
    model: str
    config: dict[str, Any]  # of the model, widths chosen
    training: dict[str, Any]  # optimizer and schedule
    tokenizer: TokenizerFacts | None
    n_parameters: int | None
    parameters_note: str  # empty where the number of parameters is matched
    seeds: tuple[SeedResult, ...]
    failures: tuple[Failure, ...]
    score: Score | None
    sample: str
    positions: tuple[PositionPoint, ...]
    surprise: tuple[Span, ...]
    attention: AttentionView | None
    cells: CellView | None

    @property
    def is_comparable(self) -> bool:
        """Whether its bits per byte mean the same as the others'."""
        return self.tokenizer is not None and self.tokenizer.is_lossless

    @property
    def is_counted(self) -> bool:
        """Counting descends nothing and draws no random numbers: another seed would give the same model."""
        return all(s.highest_lr is None for s in self.seeds)

    @property
    def has_one_seed(self) -> bool:
        """What another seed would have given is unknown."""
        return len(self.seeds) == 1 and not self.is_counted


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two contenders next to each other in the ranking, tested on the same blocks."""

    better: str
    worse: str
    difference: float  # bits per byte by which `better` is ahead
    low: float
    high: float
    p: float
    is_clear: bool


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How it was measured."""

    data: dict[str, Any]
    data_hash: str
    n_train_bytes: int
    n_valid_bytes: int
    n_test_bytes: int
    block_bytes: tuple[int, ...]
    budget: str
    n_parameters: int
    seeds: tuple[int, ...]
    n_batch: int
    n_context: int
    prompt: str
    sampling: str
    passage: str
    versions: dict[str, str]
    hardware: str
    date: str
    seconds: float
    command: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A whole comparison. `contenders` are in the order given; `ranking` is best first, without those that failed."""

    schema: int
    headline: tuple[str, ...]
    setup: Setup
    contenders: tuple[ContenderResult, ...]
    ranking: tuple[str, ...]
    neighbours: tuple[Neighbours, ...]

    def contender(self, name: str) -> ContenderResult:
        return next(c for c in self.contenders if c.name == name)

    @property
    def ranked(self) -> tuple[ContenderResult, ...]:
        """The contenders that have a score, best first."""
        return tuple(self.contender(name) for name in self.ranking)

    @property
    def failed(self) -> tuple[ContenderResult, ...]:
        return tuple(c for c in self.contenders if c.score is None)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        if given.get("schema") != SCHEMA:
            raise RegardError(
                f"This compare.json has schema {given.get('schema')!r}; this version of Regard reads {SCHEMA}. "
                "Run the comparison again, or use the version that wrote it."
            )
        return typing.cast(Self, decoded(cls, given))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read `compare.json`, or the folder that holds it."""
        file = path / "compare.json" if path.is_dir() else path
        try:
            given = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RegardError(f"There is no comparison at {path}: {file} is missing. Was it interrupted?") from None
        except ValueError as error:
            raise RegardError(f"{file} is not a comparison: {error}. Run `regard compare` again.") from None
        if not isinstance(given, dict):
            raise RegardError(f"{file} is not a comparison: it holds no mapping. Run `regard compare` again.")
        return cls.from_dict(given)


def decoded(kind: Any, value: Any) -> Any:
    """Plain JSON values as the dataclasses and tuples that `kind` names; the inverse of `dataclasses.asdict`."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        try:
            fields = {f.name: decoded(hints[f.name], value[f.name]) for f in dataclasses.fields(kind)}
        except (KeyError, TypeError):
            missing = [
                f.name for f in dataclasses.fields(kind) if not isinstance(value, Mapping) or f.name not in value
            ]
            name = getattr(kind, "__name__", str(kind))
            raise RegardError(f"This result is damaged: {name} lacks {', '.join(missing) or 'a value'}.") from None
        return kind(**fields)  # type: ignore[operator]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(decoded(inner[0], v) for v in value)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else decoded(inner[0], value)
    if kind is float:
        return math.nan if value is None else float(value)
    return value


def to_json(value: Any) -> bytes:
    """A dataclass as JSON that any reader accepts: infinite and not-a-number are null."""
    text = json.dumps(_finite(dataclasses.asdict(value)), ensure_ascii=False, allow_nan=False, indent=1)
    return text.encode("utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
