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
    """One unit's value, scaled to [-1, 1], at every token of the passage; `score` is how well it tracks `feature`."""

    layer: int
    unit: int
    feature: str
    score: float
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class CellView:
    """Units that track something a reader can see, found by `regard.lens.cells`."""

    tap: str
    tokens: tuple[str, ...]
    traces: tuple[CellTrace, ...]


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
class Views:
    """What one run shows of itself; empty where there is nothing to show."""

    sample: str = ""
    positions: tuple[PositionPoint, ...] = ()
    surprise: tuple[Span, ...] = ()
    attention: AttentionView | None = None
    cells: CellView | None = None
