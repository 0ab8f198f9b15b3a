"""What a study found: figures, tables, how it was measured, and the one sentence. Plain data; it draws nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from regard.lens.view import View
from regard.report.shell import frame_page
from regard.studies.fits import Spread, spread
from regard.untrusted.values import make_utf8

Cell = str | int | float | None


@dataclass(frozen=True)
class Line:
    """One line of a chart. `band` holds (x, low, high); `of` names the model whose colour it has, if not its own."""

    name: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float, float], ...] = ()
    dash: str = ""
    of: str | None = None

    @property
    def model(self) -> str:
        return self.of or self.name

    @classmethod
    def over(cls, name: str, spreads: Mapping[int, Spread]) -> Line:
        """The line of the means, by x, with their intervals as its band where there are any."""
        band = tuple((float(x), s.low, s.high) for x, s in spreads.items() if s.low is not None and s.high is not None)
        return cls(name, tuple((float(x), s.mean) for x, s in spreads.items()), band)


def lines_of(rows: Iterable[tuple[str, int, float]], *, is_log: bool = False) -> tuple[Line, ...]:
    """A line for each name: at each x the mean of its values, one of each seed, with their interval.

    >>> [line.points for line in lines_of([("rnn", 1, 2.0), ("rnn", 1, 4.0), ("lstm", 1, 0.5)])]
    [((1.0, 3.0),), ((1.0, 0.5),)]
    """
    found: dict[str, dict[int, list[float]]] = {}
    for name, x, y in rows:
        found.setdefault(name, {}).setdefault(x, []).append(y)
    return tuple(
        Line.over(name, {x: spread(ys, is_log=is_log) for x, ys in by_x.items()}) for name, by_x in found.items()
    )


@dataclass(frozen=True)
class Chart:
    """One figure. `measured_at`: where few x were measured, marked one by one.

    `y_limits` None: as the lines need. Charts of a finding that label an axis alike share its limits.
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    is_x_log: bool = False
    is_y_log: bool = True
    y_limits: tuple[float, float] | None = None
    measured_at: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Numbers:
    """One table; a long one is folded until someone asks."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    is_folded: bool = False


@dataclass(frozen=True)
class Finding:
    """All that a study's page shows. `summary` is the short table that the terminal prints too."""

    question: str
    sentence: str
    charts: tuple[Chart, ...]
    summary: Numbers
    method: Mapping[str, str]
    """How it was measured: what is told, by its name."""
    tables: tuple[Numbers, ...] = ()
    notes: tuple[str, ...] = ()
    """What was not measured as it was asked for."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    """What the page shows beside charts, drawn by the views' own scripts."""


@dataclass(frozen=True)
class Study:
    """A finding, and what it takes to judge and to repeat it."""

    name: str
    finding: Finding
    command: str
    settings: Mapping[str, Any]
    hardware: str
    versions: Mapping[str, str]
    date: str
    seconds: float
    folder: Path | None = None
    """Where its page is: report.html."""

    @property
    def sentence(self) -> str:
        return self.finding.sentence

    @property
    def numbers(self) -> Mapping[str, Any]:
        """What was measured, as plain values."""
        return self.finding.numbers

    def to_json(self) -> bytes:
        """What goes into numbers.json: no figures, only what they were drawn from."""
        whole = asdict(replace(self, finding=replace(self.finding, views=())))
        del whole["folder"]
        finding = whole.pop("finding")
        kept = {key: finding[key] for key in ("question", "sentence", "notes", "numbers")}
        kept["method"] = list(finding["method"].items())
        text = json.dumps({"study": whole.pop("name"), **kept, **whole}, indent=1, ensure_ascii=False)
        return make_utf8(f"{text}\n").encode()

    def _repr_html_(self) -> str:
        """What a notebook shows: the page, or the sentence alone where there is none."""
        page = None if self.folder is None else self.folder / "report.html"
        if page is None or not page.exists():
            return f"<p><b>{escape(self.sentence)}</b></p>"
        return frame_page(page.read_text(encoding="utf-8"))
