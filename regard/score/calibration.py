"""Does a probability mean what it says? Of the answers given with 80%, are 80% right?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

N_BINS = 15
BAR = 20
"""Characters of a bar that stands for all answers being right."""


@dataclass(frozen=True)
class Bin:
    """Answers whose probability lies in one fifteenth of the way from 0 to 1."""

    n: int
    confidence: float
    """Their mean probability."""
    accuracy: float
    """The share of them that is right."""


@dataclass(frozen=True)
class Calibration:
    """The reliability curve, bins that hold no answer left out, and the expected calibration error (Guo et al. 2017).

    ECE = Σ_b n_b / n · |accuracy_b - confidence_b|
    """

    bins: tuple[Bin, ...]
    ece: float

    def to_dict(self) -> dict[str, Any]:
        return {"ece": self.ece, "bins": [asdict(each) for each in self.bins]}

    def draw(self) -> list[str]:
        """The curve as lines of text, a bin each; a bar is the share that is right.

        >>> calibrate([0.9, 0.9, 0.5], [True, False, True]).draw()[-1]
        '        0.900              0.500        2  ██████████'
        """
        lines = ["", "mean probability   share that is right  answers"]
        for each in self.bins:
            bar = "█" * round(BAR * each.accuracy)
            lines.append(f"        {each.confidence:.3f}              {each.accuracy:.3f} {each.n:8,}  {bar}".rstrip())
        return lines


def calibrate(probabilities: Sequence[float], is_right: Sequence[bool]) -> Calibration:
    """The calibration of answers, of which each was given with a probability.

    >>> calibrate([0.9, 0.9, 0.5, 0.5], [True, True, True, False]).ece
    0.05
    """
    p, right = np.asarray(probabilities, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    number = np.minimum((p * N_BINS).astype(np.int64), N_BINS - 1)
    bins, error = [], 0.0
    for b in np.unique(number):
        inside = number == b
        each = Bin(int(inside.sum()), float(p[inside].mean()), float(right[inside].mean()))
        error += each.n * abs(each.accuracy - each.confidence)
        bins.append(each)
    return Calibration(tuple(bins), round(error / max(1, len(p)), 12))
