"""The order in which a page shows contenders, where it is not the order in which they were named."""

from __future__ import annotations

from regard.comparison.result import Comparison, ContenderResult


def best_first(comparison: Comparison) -> list[tuple[int, ContenderResult]]:
    """Every contender by rank, with its place in the palette; those without a score come last."""
    rank = {name: place for place, name in enumerate(comparison.ranking)}
    return sorted(enumerate(comparison.contenders), key=lambda row: rank.get(row[1].name, len(rank)))
