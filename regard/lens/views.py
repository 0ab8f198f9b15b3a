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
