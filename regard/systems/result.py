"""What a comparison of finished runs found: the schema of its `compare.json`, as plain dataclasses.

The table, the picture and the page are drawn from it, and can be drawn again later from the file alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from regard.comparison.result import decoded
from regard.errors import RegardError

KIND = "runs"
"""Tells this compare.json from one of language models that were trained to be compared."""
SCHEMA = 2


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One evaluation on the validation data while it was trained."""

    step: int
    tokens: int
    flops: float
    seconds: float
    score: float


@dataclass(frozen=True, kw_only=True)
class System:
    """One run, or several with different seeds: what it is, what it cost, and how good it is.

    `low` and `high` bound the 95% interval of `score`. Of several runs everything is a mean, but `scores`.
    """

    name: str
    runs: tuple[str, ...]
    scores: tuple[float, ...]  # of each run
    about: str
    config: dict[str, Any]
    n_parameters: int
    tokens: int
    flops: float
    seconds: float
    valid: float | None  # the best while it was trained, which is that of its weights; None: it was not watched
    score: float
    low: float
    high: float
    chrf: float | None
    curve: tuple[Watched, ...]


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Two systems on draws of the same sentences; `difference` is by how much `better` is ahead."""

    better: str
    worse: str
    difference: float
    low: float
    high: float
    p: float
    wins: float  # share of the draws in which `better` is ahead
    is_clear: bool


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What each system had spent when its validation score first was `level`, in the order of systems; None: never."""

    level: float
    flops: tuple[float | None, ...]
    seconds: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One test sentence, or picture, and what every system's first run makes of it, in the order of systems."""

    number: int  # from 1, among all that were tested
    source: str
    references: tuple[str, ...]
    outputs: tuple[str, ...]
    picture: str | None = None  # as a data: address


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How it was measured."""

    task: str  # translation, parsing or captions
    metric: str  # BLEU, F1 or BLEU-4
    signature: str
    chrf_signature: str
    watched: str  # what the curves show: BLEU, F1 or bits per byte
    data: str
    data_hash: str
    n_tested: int
    n_left_out: int
    decoding: str
    n_draws: int
    notes: tuple[str, ...]
    versions: dict[str, str]
    hardware: str
    date: str
    command: str

    @property
    def is_watched_upwards(self) -> bool:
        """Whether a higher validation score is a better one."""
        return self.watched != LOSS


LOSS = "bits per byte"


@dataclass(frozen=True, kw_only=True)
class SystemsComparison:
    """A whole comparison. `systems` are in the order given; `ranking` is best first."""

    kind: str
    schema: int
    headline: tuple[str, ...]
    setup: Setup
    systems: tuple[System, ...]
    ranking: tuple[str, ...]
    duels: tuple[Duel, ...]  # each with the next better and with the best, best first
    reached: tuple[Reached, ...]
    examples: tuple[Example, ...]

    def system(self, name: str) -> System:
        return next(s for s in self.systems if s.name == name)

    @property
    def ranked(self) -> tuple[System, ...]:
        """Best first."""
        return tuple(self.system(name) for name in self.ranking)

    def place(self, name: str) -> int:
        """Which system in the order given, which is its place in the palette."""
        return next(i for i, s in enumerate(self.systems) if s.name == name)

    def duel(self, better: str, worse: str) -> Duel:
        return next(d for d in self.duels if (d.better, d.worse) == (better, worse))

    @classmethod
    def load(cls, folder: Path) -> SystemsComparison:
        """Read the `compare.json` in a folder that `holds_systems`."""
        given = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
        if given.get("schema") != SCHEMA:
            raise RegardError(
                f"The compare.json in '{folder}' has schema {given.get('schema')!r}; this version of Regard reads "
                f"{SCHEMA}. Run the comparison again, or use the version that wrote it."
            )
        return cast(SystemsComparison, decoded(cls, given))


def holds_systems(folder: Path) -> bool:
    """Whether a folder holds a comparison of finished runs."""
    try:
        found = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("kind") == KIND
