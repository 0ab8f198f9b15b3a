"""What a prediction owes to a part of the model: replace the part's value, and see how far the prediction moves.

value                  layers.L.z of a head, layers.L.cell, layers.L.attention, ... : any tap
zero a head            z of head n is 0
mean                   the value is its mean over the positions
from another text      the value is that of the other text's trace (activation patching; Vig et al. 2020)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError
from regard.layers.taps import Replacement
from regard.lens.prediction import Prediction
from regard.lens.trace import Trace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """How a prediction moves when values are replaced: log P of its target, and the most probable choice."""

    target: str
    before: float
    after: float
    """log P of the target; of a rating, the number."""
    best_before: str
    best_after: str
    total_variation: float
    """Half the sum of |P' - P| over all choices: the share of probability that moved; nan of a rating."""

    @property
    def change(self) -> float:
        return self.after - self.before

    def __str__(self) -> str:
        best = (
            f"still {self.best_after!r}"
            if self.best_after == self.best_before
            else f"{self.best_after!r} and no longer {self.best_before!r}"
        )
        return f"log P({self.target!r}) {self.before:.3f} → {self.after:.3f} ({self.change:+.3f}); the best is {best}"


def patch(prediction: Prediction, replace: Mapping[str, Replacement]) -> Effect:
    """Replace values by tap name, and compare the prediction with what it was."""
    before, after = prediction.log_probs(), prediction.log_probs(replace)
    best = [prediction.choices[int(found.argmax())] for found in (before, after)]
    moved = math.nan if prediction.is_number else measure_variation(before, after)
    t = prediction.target
    return Effect(prediction.target_name, float(before[t]), float(after[t]), best[0], best[1], moved)


def measure_variation(log_p: Array, log_q: Array) -> float:
    """Total variation of two distributions: ½ Σ |p - q|.

    >>> measure_variation(np.log([0.5, 0.5]), np.log([0.8, 0.2]))
    0.30000000000000004
    """
    return float(0.5 * np.abs(np.exp(log_p) - np.exp(log_q)).sum())


def zero_head(layer: int, head: int, prefix: str = "") -> dict[str, Replacement]:
    """What takes one head of a layer's attention out, both counted from 0; its z is zero.

    `prefix` is "cross_" for a decoder's look at its source, and "encoder." goes before the name of the layer by hand.
    """
    tap = f"layers.{layer}.{prefix}z"

    def zero(z: Tensor) -> Tensor:
        _check_there("head", head, tap, z.shape[1])
        kept = torch.ones(z.shape[1], dtype=z.dtype, device=z.device)
        kept[head] = 0
        return z * kept[:, None, None]

    return {tap: zero}


def zero_units(tap: str, *units: int) -> dict[str, Replacement]:
    """What sets some units of a tap to zero at every position: cells, gates, states."""

    def zero(value: Tensor) -> Tensor:
        for unit in units:
            _check_there("unit", unit, tap, value.shape[-1])
        kept = torch.ones(value.shape[-1], dtype=value.dtype, device=value.device)
        kept[list(units)] = 0
        return value * kept

    return {tap: zero}


def set_row(tap: str, row: int, weights: Array | list[float], head: int | None = None) -> dict[str, Replacement]:
    """What replaces one row of attention weights, of one head or of all."""

    def change(A: Tensor) -> Tensor:
        given = torch.as_tensor(weights).to(A)
        if given.shape != A.shape[-1:]:
            raise RegardError(f"A row of '{tap}' has {A.shape[-1]} weights, and {tuple(given.shape)} were given.")
        _check_there("row", row, tap, A.shape[2])
        _check_there("head", head, tap, A.shape[1])
        changed = A.clone()
        changed[:, slice(None) if head is None else head, row] = given
        return changed

    return {tap: change}


def look_evenly(*taps: str) -> dict[str, Replacement]:
    """What makes attention uniform: every position looks alike at all that it looks at at all."""

    def even(A: Tensor) -> Tensor:
        seen = (A > 0).to(A)
        return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)

    return dict.fromkeys(taps, even)


def take_mean(*taps: str) -> dict[str, Replacement]:
    """What puts a value's mean over the positions in the place of each of them."""

    def mean(value: Tensor) -> Tensor:
        return value.mean(dim=-2, keepdim=True).expand_as(value)

    return dict.fromkeys(taps, mean)


def take_from(trace: Trace, *taps: str) -> dict[str, Replacement]:
    """What puts the values of another text's trace in the place of these; both texts have as many tokens."""
    return {tap: trace[tap] for tap in taps}


def _check_there(what: str, number: int | None, tap: str, n: int) -> None:
    """Refuse a unit, a row or a head that a tap does not have; None stands for all of them."""
    if number is not None and not 0 <= number < n:
        raise RegardError(f"There is no {what} {number}: '{tap}' has {n}, counted from 0.")
