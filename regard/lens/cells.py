"""Cells that mean something: units whose value follows a feature of the text that a reader can see.

Every unit is held against every feature (after Karpathy, Johnson & Fei-Fei 2015, who found such cells by eye):

    r = Σ (u - ū)(f - f̄) / √(Σ (u - ū)² Σ (f - f̄)²)

The unit with the highest |r| on the first half of a text is picked, and its r on the second half is what is reported,
so that luck of the draw among thousands of units does not flatter it. The sums run along while the text is read, so
that memory does not grow with the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.lens.features import FEATURES, choose_varied, varies
from regard.lens.units import Reading, read_units
from regard.lens.views import CellTrace, CellView, RankedUnit
from regard.text.tokenizer import Tokenizer

Array = NDArray[np.float64]

MAX_CHARS = 200_000
MIN_TOKENS = 200
PASSAGE_CHARS = 600
MAX_RANKED = 40
WEAKEST = 0.25  # a correlation below this is not worth a picture, unless it is the best there is
EXPLAINED = 0.3
"""A unit counts as explained where |r| of its best feature on the held-out half is this or more."""


class Sums:
    """What correlations of U units with K features need, added up row by row."""

    def __init__(self, K: int, U: int) -> None:
        self.n = 0
        self.u, self.uu = np.zeros(U), np.zeros(U)
        self.f, self.ff = np.zeros(K), np.zeros(K)
        self.uf = np.zeros((K, U))

    def add(self, units: NDArray[Any], features: Array) -> None:
        """Take in rows of units (t, U) and the features (K, t) at the same tokens."""
        values = units.astype(np.float64)
        self.n += len(values)
        self.u += values.sum(axis=0)
        self.uu += (values**2).sum(axis=0)
        self.f += features.sum(axis=1)
        self.ff += (features**2).sum(axis=1)
        self.uf += features @ values

    @property
    def spread(self) -> Array:
        """Σ (u - ū)² of every unit."""
        found: Array = np.maximum(self.uu - self.u**2 / max(self.n, 1), 0.0)
        return found

    def correlations(self) -> Array:
        """Pearson's r of every feature with every unit, (K, U); 0 where either does not move."""
        n = max(self.n, 1)
        spread_f = np.maximum(self.ff - self.f**2 / n, 0.0)
        norms = np.sqrt(np.outer(spread_f, self.spread))
        covariance = self.uf - np.outer(self.f, self.u) / n
        floor = 1e-9 * max(n, 1)
        r: Array = np.divide(covariance, norms, out=np.zeros_like(covariance), where=norms > floor)
        return np.clip(r, -1.0, 1.0)


@dataclass(frozen=True)
class Passage:
    """A stretch of the text that is shown, and every unit's values on it, by tap, (t, H)."""

    first: int
    last: int
    feature: str
    units: dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Search:
    """Every unit held against every feature: `picked` and `checked` are r on the first and second half, (K, U)."""

    features: tuple[str, ...]
    left_out: tuple[str, ...]
    taps: tuple[tuple[str, int], ...]
    picked: Array
    checked: Array
    moves: NDArray[np.bool_]
    n_chars: int

    def place(self, unit: int) -> tuple[str, int]:
        """The tap that a unit is in, and its number there."""
        for tap, width in self.taps:
            if unit < width:
                return tap, unit
            unit -= width
        raise IndexError(unit)

    def number(self, tap: str, unit: int) -> int:
        """The number among all of a unit of a tap; the inverse of `place`."""
        names = [name for name, _ in self.taps]
        return sum(width for _, width in self.taps[: names.index(tap)]) + unit

    def best(self, feature: int) -> tuple[int, float]:
        """The unit that follows a feature best on the first half, and its correlation on the second."""
        unit = int(np.abs(self.picked[feature]).argmax())
        return unit, float(self.checked[feature, unit])

    def best_features(self) -> tuple[NDArray[np.int64], Array]:
        """For every unit the feature it follows best on the first half, and its correlation on the second."""
        chosen = np.abs(self.picked).argmax(axis=0)
        return chosen, self.checked[chosen, np.arange(self.picked.shape[1])]

    @property
    def follows_nothing(self) -> int | None:
        """The unit that moves and is the furthest from every feature, on both halves; None: none moves."""
        strongest = np.maximum(np.abs(self.picked).max(axis=0), np.abs(self.checked).max(axis=0))
        return int(np.where(self.moves, strongest, np.inf).argmin()) if self.moves.any() else None


def find_cells(model: Any, tokenizer: Tokenizer, text: str, max_traces: int = len(FEATURES)) -> CellView | None:
    """Search the units of a model on `text` and show the best: each on a passage on which its feature varies.

    None for a model without units, for a text of under MIN_TOKENS tokens, on which luck would decide, and for one on
    which no feature varies.
    """
    text = text[:MAX_CHARS]
    reading = read_units(model, tokenizer, text)
    if reading is None or len(reading.ends) < MIN_TOKENS:
        return None
    search, passages = search_units(reading, text)
    if not search.features or not search.taps:
        return None
    found = sorted(((name, *search.best(k)) for k, name in enumerate(search.features)), key=lambda f: -abs(f[2]))
    kept = [f for f in found if abs(f[2]) >= WEAKEST][:max_traces] or found[:1]
    traces = [_trace(search, reading, text, passages[name], name, unit, r) for name, unit, r in kept]
    idle = search.follows_nothing
    nothing = None if idle is None else _trace(search, reading, text, passages[kept[0][0]], "", idle, 0.0)
    chosen, r = search.best_features()
    ranked = []
    for u in np.argsort(-np.abs(r), kind="stable")[:MAX_RANKED].tolist():
        tap, number = search.place(u)
        name = search.features[int(chosen[u])]
        ranked.append(RankedUnit(tap=tap, unit=number, feature=name, score=round(float(r[u]), 3)))
    return CellView(
        tap="cell" if search.taps[0][0].endswith(".cell") else "hidden",
        tokens=traces[0].tokens,
        traces=tuple(traces),
        nothing=nothing,
        n_units=len(r),
        n_explained=int((np.abs(r) >= EXPLAINED).sum()),
        threshold=EXPLAINED,
        n_chars=search.n_chars,
        left_out=search.left_out,
        ranked=tuple(ranked),
    )


def show_cells(found: CellView, model: Any, tokenizer: Tokenizer, text: str) -> CellView:
    """What units that were found give on another text, beside the passages that they were found with."""
    reading = read_units(model, tokenizer, text, n_lanes=1)
    if reading is None or not len(reading.ends):
        return found
    n = len(reading.ends)
    whole = Passage(0, n, "", {})
    for rows, units in reading.chunks:
        for tap, values in units.items():
            _keep(whole, tap, rows, values)
    tokens = _tokens(reading, text, 0, n)

    def show(trace: CellTrace) -> CellTrace:
        values = whole.units[trace.tap][:, trace.unit] / trace.largest
        return replace(trace, own_tokens=tokens, own_values=_round(np.clip(values, -1, 1)))

    nothing = None if found.nothing is None else show(found.nothing)
    return replace(found, traces=tuple(map(show, found.traces)), nothing=nothing)


def search_units(
    reading: Reading, text: str, features: Sequence[str] = tuple(FEATURES)
) -> tuple[Search, dict[str, Passage]]:
    """Hold every unit against every feature that varies on both halves, while the text is read once."""
    n = len(reading.ends)
    at = np.maximum(reading.ends - 1, 0)
    half = n // 2
    values = {name: FEATURES[name](text)[at] for name in features}
    names = tuple(name for name, v in values.items() if varies(v[:half]) and varies(v[half:]))
    F = np.stack([values[name] for name in names]) if names else np.zeros((0, n))  # (K, n)
    middle = int(reading.ends[half - 1]) if half else 0
    passages = {name: _place_passage(reading, text, FEATURES[name](text), name, middle) for name in names}
    first: dict[str, Sums] = {}
    second: dict[str, Sums] = {}
    for rows, units in reading.chunks:
        is_late = rows >= half
        for tap, found in units.items():
            for sums, which in ((first, ~is_late), (second, is_late)):
                sums.setdefault(tap, Sums(len(names), found.shape[1])).add(found[which], F[:, rows[which]])
            for passage in passages.values():
                _keep(passage, tap, rows, found)
    taps = tuple((tap, len(sums.u)) for tap, sums in first.items())
    empty = np.zeros((len(names), 0))
    picked, checked = (np.concatenate([empty, *(s.correlations() for s in part.values())], axis=1)
                       for part in (first, second))  # fmt: skip
    spread = np.concatenate([np.zeros(0), *(sums.spread / max(sums.n, 1) for sums in second.values())])
    moves = spread > 1e-2 * np.median(spread) if len(spread) else spread > 0
    left_out = tuple(name for name in features if name not in names)
    return Search(names, left_out, taps, picked, checked, moves, len(text)), passages


def _place_passage(reading: Reading, text: str, feature: Array, name: str, middle: int) -> Passage:
    """Where in the second half the feature varies the most, in tokens."""
    begin, end = choose_varied(feature, text, PASSAGE_CHARS, middle)
    first = min(int(np.searchsorted(reading.starts, begin)), len(reading.starts) - 1)
    last = int(np.searchsorted(reading.ends, end, side="right"))
    return Passage(first, max(last, first + 1), name, {})


def _keep(passage: Passage, tap: str, rows: NDArray[np.int64], found: NDArray[np.float32]) -> None:
    inside = (rows >= passage.first) & (rows < passage.last)
    if inside.any():
        width = (passage.last - passage.first, found.shape[1])
        passage.units.setdefault(tap, np.zeros(width, dtype=np.float32))[rows[inside] - passage.first] = found[inside]


def _tokens(reading: Reading, text: str, first: int, last: int) -> tuple[str, ...]:
    spans = zip(reading.starts[first:last].tolist(), reading.ends[first:last].tolist(), strict=True)
    return tuple(text[a:b] for a, b in spans)


def _trace(
    search: Search, reading: Reading, text: str, passage: Passage, feature: str, unit: int, r: float
) -> CellTrace:
    """One unit's values on the passage of its feature, divided by the largest of them."""
    tap, number = search.place(unit)
    values = passage.units[tap][:, number]
    largest = max(float(np.abs(values).max()), 1e-9)
    at = np.maximum(reading.ends[passage.first : passage.last] - 1, 0)
    follows = FEATURES[feature](text)[at] if feature else np.zeros(0)
    top = max(float(np.abs(follows).max()), 1e-9) if len(follows) else 1.0
    layer = re.search(r"layers\.(\d+)", tap)
    return CellTrace(
        layer=int(layer[1]) if layer else 0,
        unit=number,
        tap=tap,
        feature=feature,
        score=r,
        score_found=float(search.picked[search.features.index(feature), unit]) if feature else 0.0,
        values=_round(values / largest),
        largest=largest,
        tokens=_tokens(reading, text, passage.first, passage.last),
        feature_values=_round(follows / top),
    )


def _round(values: NDArray[Any]) -> tuple[float, ...]:
    return tuple(round(float(v), 3) for v in values)
