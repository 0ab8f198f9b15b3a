"""What a comparison found: the schema of `compare.json`, as plain dataclasses.

Everything that the table, the picture and the report show is in here, so that each can be drawn again later from the
file alone. `to_json` and `Comparison.from_dict` are inverses.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self

from regard.compare.old_results import SCHEMA, upgrade
from regard.errors import RegardError, explain_old_name, suggest_path
from regard.lens.views import Views
from regard.score.by_length import LengthScore
from regard.score.figures import Measure, count_text, duration_text, flops_text, or_dash
from regard.score.frames import import_pandas
from regard.untrusted.fields import FieldError, decode_fields
from regard.untrusted.small_files import DamagedFileError, read_json
from regard.untrusted.values import quote

FILE = "compare.json"
BEGUN = "runs.json"
"""What is the first file in the folder of a comparison of finished runs."""
SAME_TOKENS = " (same tokens)"
"""Ends the name of the n-gram that counts as many tokens as the others read, beside the one that counts all."""


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """One evaluation on the validation data: means over runs, and the lowest and highest score among them."""

    step: int
    tokens: float
    flops: float
    seconds: float
    score: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of a contender: its score on the test items, and what its training cost."""

    run: str  # its folder; relative to the comparison's where it was trained for it
    seed: int | None
    score: float
    tokens: float | None  # None, as flops and seconds: it was imported, and its training is not known
    flops: float | None
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A seed that gave no score, and why."""

    seed: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """The mean over runs; `low` and `high` bound its 95% interval. `others` are second opinions by name."""

    value: float
    low: float
    high: float
    others: dict[str, float]

    if not TYPE_CHECKING:  # or every attribute would have a type: any

        def __getattr__(self, name: str) -> Any:
            raise explain_old_name(self, name, {"bits_per_byte": "value"})


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One row of the ranking: a run, or several that differ by their seed; `score` is None where all failed."""

    name: str
    model: str
    about: str
    config: dict[str, dict[str, Any]]  # sections of its runs' config
    n_parameters: int | None
    n_non_embedding: int | None  # of these, without the tables of tokens and positions; None: it is counted, or unknown
    size_note: str  # empty where there is nothing to say about its number of parameters
    lossy: str  # its tokenizer, where that loses text: its score compares with those of the same one alone; else empty
    has_seeds: bool  # False: counting draws no random numbers, so that another seed would give the same model
    runs: tuple[RunResult, ...]
    failures: tuple[Failure, ...]
    score: Score | None
    valid: float | None  # the best while it was trained, which is that of its weights; None: it was not watched
    baseline: float | None  # what frequencies of the training text's tokens reach; None: not known
    curve: tuple[CurvePoint, ...]
    views: Views
    by_length: tuple[LengthScore, ...] = ()  # of the test items, where their sources are texts

    @property
    def tokens(self) -> float | None:
        return _mean_known(run.tokens for run in self.runs)

    @property
    def flops(self) -> float | None:
        return _mean_known(run.flops for run in self.runs)

    @property
    def seconds(self) -> float | None:
        return _mean_known(run.seconds for run in self.runs)

    @property
    def tokens_per_second(self) -> float | None:
        return _mean_known(run.tokens / max(run.seconds or 0, 1e-9) for run in self.runs if run.tokens is not None)


def _mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """Two contenders on the same test items; `difference` is by how much `better` is ahead."""

    better: str
    worse: str
    difference: float
    relative: float  # of the score of `worse`
    low: float
    high: float
    p: float  # two-sided, over texts and seeds together
    p_holm: float  # corrected for the number of pairs
    n_effective: float | None  # so many independent items would tell as much
    is_settled: bool
    why: str  # why it is not settled; empty where it is


@dataclass(frozen=True, kw_only=True)
class CostToScore:
    """What each contender had spent when its validation score first was `level`, in their order; None: never."""

    level: float
    flops: tuple[float | None, ...]
    seconds: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One test item and what every contender's first run answers, in the order of contenders."""

    number: int  # from 1, among all that were tested
    source: str
    references: tuple[str, ...]
    outputs: tuple[str, ...]
    picture: str | None = None  # as a data: address


@dataclass(frozen=True, kw_only=True)
class Training:
    """The one budget that contenders were trained under."""

    data: str
    budget: str
    n_parameters: int | None  # None: as they were configured
    match: str  # what of their parameters is matched: total, non-embedding, none
    seeds: tuple[int, ...]
    batch: str
    seconds: float  # of the whole comparison


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How it was measured."""

    task: str
    items: str
    metric: str
    is_higher_better: bool
    signature: str
    other_signatures: dict[str, str]
    watched: str  # what the curves show
    is_watched_upwards: bool
    data: str
    data_hash: str
    n_tested: int
    n_documents: int | None  # that the items come from; None: not known
    n_left_out: int
    decoding: str  # empty where answers are not searched for
    interval: str
    test: str
    training: Training | None  # None: the runs were finished before
    passage: str
    prompt: str
    sampling: str
    notes: tuple[str, ...]
    versions: dict[str, str]
    hardware: str
    date: str
    command: str
    unit: str = "token"  # what training counts, in the singular

    @property
    def measure(self) -> Measure:
        return Measure(name=self.metric, is_higher_better=self.is_higher_better)

    @property
    def watched_measure(self) -> Measure:
        return Measure(name=self.watched, is_higher_better=self.is_watched_upwards)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A whole comparison.

    `contenders` are in the order given; `ranking` is best first, without those that failed. Contenders whose tokenizers
    lose text stand behind all others, group by group, and a place counts inside its group alone.
    """

    schema: int
    headline: tuple[str, ...]
    setup: Setup
    contenders: tuple[Contender, ...]
    ranking: tuple[str, ...]
    pairs: tuple[PairResult, ...]  # all that can be compared, best first
    warnings: tuple[str, ...]  # what makes it doubtful, each a sentence
    power: str  # which differences it can settle
    costs: tuple[CostToScore, ...]
    examples: tuple[Example, ...]
    folder: Path | None = field(default=None, compare=False)
    """Where it was read from or written to; not in the file."""

    def contender(self, name: str) -> Contender:
        return next(c for c in self.contenders if c.name == name)

    @property
    def ranked(self) -> tuple[Contender, ...]:
        """The contenders that have a score, best first."""
        return tuple(self.contender(name) for name in self.ranking)

    @property
    def failed(self) -> tuple[Contender, ...]:
        return tuple(c for c in self.contenders if c.score is None)

    def pair(self, better: str, worse: str) -> PairResult | None:
        return next((pair for pair in self.pairs if (pair.better, pair.worse) == (better, worse)), None)

    @property
    def groups(self) -> tuple[tuple[Contender, ...], ...]:
        """The ranking in parts that can be compared: those that lose no text, then each lossy tokenizer's."""
        return group_by_tokenizer(self.ranked)

    @property
    def neighbours(self) -> tuple[PairResult, ...]:
        """The tests between neighbours in the ranking, best first."""
        found = (self.pair(a, b) for a, b in zip(self.ranking, self.ranking[1:], strict=False))
        return tuple(pair for pair in found if pair is not None)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row a contender, best first."""
        pandas = import_pandas()
        rows = []
        for c in self.ranked:
            assert c.score is not None
            score = {self.setup.metric: c.score.value, "low": c.score.low, "high": c.score.high, **c.score.others}
            sizes = {"parameters": c.n_parameters, "non_embedding": c.n_non_embedding}
            cost = {**sizes, "tokens": c.tokens, "flops": c.flops, "seconds": c.seconds}
            rows.append({"model": c.name, **score, "valid": c.valid, **cost, "runs": len(c.runs)})
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        measure, rows = self.setup.measure, []
        for c in self.ranked:
            assert c.score is not None
            cells = (c.name, measure.value(c.score.value), measure.interval(c.score.low, c.score.high),
                     "" if c.n_parameters is None else count_text(c.n_parameters), or_dash(flops_text, c.flops),
                     or_dash(duration_text, c.seconds))  # fmt: skip
            rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        heads = ("model", measure.name, "95% interval", "parameters", "FLOPs", "time")
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        return f"<p><b>{escape(' '.join(self.headline))}</b></p><table><tr>{head}</tr>{''.join(rows)}</table>"

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Of what a compare.json holds, written by this version or an earlier one."""
        given = upgrade(given)
        if given.get("schema") != SCHEMA:
            raise RegardError(
                f"This {FILE} has schema {given.get('schema')!r}; this version of Regard reads 1 to {SCHEMA}. "
                "Run the comparison again, or use the version that wrote it."
            )
        try:
            found = decode_fields(cls, {name: value for name, value in given.items() if name not in ("kind", "folder")})
            found._check()
        except FieldError as error:
            raise RegardError(f"This result is damaged: {error}. Run `regard compare` again.") from None
        return found

    def _check(self) -> None:
        """Refuse names that are no contender's: every table looks them up."""
        scored = {c.name for c in self.contenders if c.score is not None}
        named = {*self.ranking, *(name for pair in self.pairs for name in (pair.better, pair.worse))}
        if len(scored | {c.name for c in self.failed}) < len(self.contenders):
            raise FieldError("two contenders have one name")
        if len(set(self.ranking)) < len(self.ranking) or not named <= scored:
            raise FieldError(f"its ranking and pairs name {quote(sorted(named - scored)[:1])}, which has no score")
        wrong = [cost.level for cost in self.costs if {len(cost.flops), len(cost.seconds)} != {len(self.contenders)}]
        if wrong or any(len(example.outputs) > len(self.contenders) for example in self.examples):
            raise FieldError("it has costs or examples of more or fewer contenders than there are")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read `compare.json`, or the folder that holds it."""
        file = path / FILE if path.is_dir() else path
        try:
            given = read_json(file, way_out="Run `regard compare` again")
        except FileNotFoundError:
            raise RegardError(_explain_missing(path)) from None
        except DamagedFileError as error:
            raise RegardError(f"{file} is not a comparison: {error}") from None
        if not isinstance(given, dict):
            raise RegardError(f"{file} is not a comparison: it holds no mapping. Run `regard compare` again.")
        found = cls.from_dict(given)
        return dataclasses.replace(found, folder=path if path.is_dir() else path.parent)


def group_by_tokenizer(ranked: Sequence[Contender]) -> tuple[tuple[Contender, ...], ...]:
    """Contenders that can be compared with each other, the lossless ones first; the order inside a group is kept."""
    names = sorted({c.lossy for c in ranked}, key=lambda lossy: (lossy != "", [c.lossy for c in ranked].index(lossy)))
    return tuple(tuple(c for c in ranked if c.lossy == name) for name in names)


def _explain_missing(path: Path) -> str:
    """Why there is no comparison at a path, and what to type instead."""
    if not path.exists():
        return f"There is no folder '{path}'.{suggest_path(path, is_folder=True)} Give one that `regard compare` wrote."
    if (path / "config.yaml").exists():
        return (
            f"There is no comparison at {path}: it is the folder of one run, and {FILE} is missing. Its scores: "
            f"regard eval {path}"
        )
    if (path / "plan.yaml").exists() or (path / BEGUN).exists():
        return (
            f"There is no comparison at {path} yet: {FILE} is missing, since it was interrupted. Run the same `regard "
            "compare` again to go on with it."
        )
    return f"There is no comparison at {path}: {FILE} is missing. Give a folder that `regard compare` wrote."


def to_json(value: Any) -> str:
    """A dataclass as JSON that any reader accepts: infinite and not-a-number are null."""
    plain = dataclasses.asdict(value)
    plain.pop("folder", None)
    return json.dumps(_finite(plain), ensure_ascii=False, allow_nan=False, indent=1)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
