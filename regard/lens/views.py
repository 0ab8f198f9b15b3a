"""What looking inside a model found, as plain values that are saved with a comparison. It imports no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AttentionView:
    """Attention weights on the first tokens of the passage: `weights[layer][head][query][key]`, key <= query."""

    tokens: tuple[str, ...]
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]


@dataclass(frozen=True, kw_only=True)
class CellTrace:
    """One unit's value, scaled to [-1, 1], at every token of a passage; `score` is how well it follows `feature`."""

    layer: int
    unit: int
    feature: str
    score: float
    """The correlation on the half of the text that did not choose the unit."""
    values: tuple[float, ...]
    tap: str = ""
    """The tap that holds the unit; empty in files of earlier versions."""
    score_found: float = 0.0
    """The correlation on the half of the text that chose the unit."""
    largest: float = 1.0
    """What the values were divided by."""
    tokens: tuple[str, ...] = ()
    """Of the passage; empty: those of the view."""
    feature_values: tuple[float, ...] = ()
    """The feature itself at every token, scaled to [0, 1]."""
    own_tokens: tuple[str, ...] = ()
    """Of a text that the user gave, and the unit's values on it."""
    own_values: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankedUnit:
    """A unit, the feature that it follows best, and its correlation on the half that did not choose the feature."""

    tap: str
    unit: int
    feature: str
    score: float


@dataclass(frozen=True, kw_only=True)
class CellView:
    """Units that follow something a reader can see, found by `regard.lens.cells`, the best first."""

    tap: str
    tokens: tuple[str, ...]
    traces: tuple[CellTrace, ...]
    nothing: CellTrace | None = None
    """A unit that moves and follows none of the features."""
    n_units: int = 0
    n_explained: int = 0
    """How many units follow some feature with a correlation of `threshold` or more."""
    threshold: float = 0.0
    n_chars: int = 0
    """How much text was read."""
    left_out: tuple[str, ...] = ()
    """Features that do not vary on the text."""
    ranked: tuple[RankedUnit, ...] = ()
    """The units that follow a feature best."""


@dataclass(frozen=True, kw_only=True)
class PositionPoint:
    """Loss where `n_bytes_before` bytes of the text have been seen (the middle of a bin), with its 95% interval."""

    n_bytes_before: float
    bits_per_byte: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class WindowLosses:
    """Loss by position of one run in each of many windows of the test text: `bits_per_byte[window][bin]`."""

    n_bytes_before: tuple[float, ...]
    bits_per_byte: tuple[tuple[float, ...], ...]
    documents: tuple[int, ...]
    """From which document each window is."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """One token of the passage: its characters `[start, end)` and its surprise."""

    start: int
    end: int
    bits: float


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """A word that may come next, and how probable it is."""

    word: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class Views:
    """What one run shows of itself; empty where there is nothing to show."""

    sample: str = ""
    next_words: tuple[Continuation, ...] = ()
    """The words that are most probable after the prompt, best first."""
    positions: tuple[PositionPoint, ...] = ()
    surprise: tuple[Span, ...] = ()
    attention: AttentionView | None = None
    cells: CellView | None = None
