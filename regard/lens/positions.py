"""The vectors that tell a model where a token stands: P (n, D), learned or fixed, and how alike two of them are.

P Pᵀ [t, t+k]: of sinusoids it depends on the offset k alone (Vaswani et al. 2017); learned tables can do as they like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from regard.layers.positions import LearnedPositions, SinusoidalPositions, sinusoids
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, Packed, View
from regard.models.bert import Bert

Array = NDArray[np.float64]
MAX_SHOWN = 160  # positions in a picture; curves are of all


@dataclass(frozen=True)
class PositionTable:
    """One table of a model; `where` is the name of its part, such as mixer.positions."""

    where: str
    is_learned: bool
    values: Array


@dataclass(frozen=True)
class OffsetCurve:
    """The cosine of positions k apart: its mean over all pairs, and its spread (standard deviation), by k."""

    mean: Array
    spread: Array


def find_tables(model: nn.Module) -> list[PositionTable]:
    """Every table of positions in a model; of a BERT without the first rows, where no token ever stands."""
    unused = {id(part.positions): part.n_unused_positions for part in model.modules() if isinstance(part, Bert)}
    found = []
    for where, part in model.named_modules():
        if isinstance(part, LearnedPositions | SinusoidalPositions):
            values = part.table.detach().float().cpu().numpy().astype(np.float64)
            found.append(PositionTable(where, isinstance(part, LearnedPositions), values[unused.get(id(part), 0) :]))
    return found


def compare_offsets(table: Array) -> OffsetCurve:
    """cos(P_t, P_{t+k}), mean and spread over t, for every offset k that has a few pairs."""
    n = len(table)
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    alike = unit @ unit.T  # (n, n)
    offsets = range(max(1, n - min(8, n // 2)))
    diagonals = [np.diagonal(alike, k) for k in offsets]
    return OffsetCurve(np.array([d.mean() for d in diagonals]), np.array([d.std() for d in diagonals]))


def view_positions(subject: Subject, options: LookOptions) -> View | None:
    """Every table of positions as a picture, P Pᵀ, and the cosine by offset beside that of sinusoids."""
    model = subject.run.model
    tables = find_tables(model) if isinstance(model, nn.Module) else []
    if not tables:
        return None
    plain, rows, said = [], [], []
    for table in tables:
        n, D = table.values.shape
        curve = compare_offsets(table.values)
        fixed = compare_offsets(sinusoids(n, D).double().numpy().astype(np.float64))
        half = next((k for k, value in enumerate(curve.mean) if value < 0.5), None)
        kind = "learned" if table.is_learned else "sinusoidal"
        reach = f"falls below 0.5 at {half} apart" if half is not None else "stays above 0.5"
        next_to = float(curve.mean[1]) if len(curve.mean) > 1 else 1.0
        side = f"In the {_side(table)}: " if len(tables) > 1 and _side(table) else ""
        said.append(
            f"{side}{n} {kind} vectors of {D} numbers: the cosine of neighbours is {next_to:.2f}, {reach}; at one "
            f"offset it varies by {float(curve.spread[1:].mean()) if len(curve.spread) > 1 else 0.0:.2g}"
        )
        shown = table.values[:MAX_SHOWN]
        plain.append({
            "name": _name(table, len(tables)), "isLearned": table.is_learned,
            "table": Packed(shown), "products": Packed(shown @ shown.T),
            "mean": _round(curve.mean), "spread": _round(curve.spread), "fixed": _round(fixed.mean), "n": n,
        })  # fmt: skip
        for k in dict.fromkeys(k for k in (0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512) if k < len(curve.mean)):
            rows.append((_name(table, len(tables)), str(k), f"{curve.mean[k]:+.3f}", f"{curve.spread[k]:.3f}"))
    return View(
        name="positions",
        title="Where a token stands",
        note="A row for each position, a column for each number of its vector. P Pᵀ shows how alike two positions "
        "are: of sinusoids the product depends on how far apart they are and on nothing else, so that its picture is "
        "striped along the diagonal. Vectors that were never trained are noise.",
        summary=". ".join(said) + ".",
        data={"tables": plain},
        table=(("table", "apart", "mean cosine", "its spread"), rows),
    )


def _name(table: PositionTable, n: int) -> str:
    kind, side = "learned" if table.is_learned else "sinusoidal", _side(table)
    return f"{side}, {kind}" if n > 1 and side else kind


def _side(table: PositionTable) -> str:
    """Which part of a translator a table is in; empty for other models."""
    return {"encoder": "encoder", "target": "decoder"}.get(table.where.split(".")[0], "")


def _round(values: Array) -> list[float]:
    return [round(float(v), 4) for v in values]
