"""How well masked places are filled, row by row, so that draws of rows can be scored too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from regard.score.significance import Counts

RIGHT = "masked tokens right, %"


@dataclass
class MaskedLoss:
    """Nats over the masked tokens of all rows; an answer is {"nats", "right", "masked"} of a row."""

    name: str = "nats a masked token"
    is_higher_better: bool = False
    signature: str = "-log P of the tokens at masked places, which are the same for all runs of one vocabulary"
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def counts(self, answers: Sequence[Any]) -> Counts:
        return np.array([(a["nats"], a["masked"]) for a in answers], dtype=np.float64)

    def score(self, summed: Counts, /) -> float:
        return float(summed[0] / summed[1])

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        """The share of masked tokens whose most probable filling is the right one."""
        return {RIGHT: fmean(100 * sum(a["right"] for a in row) / sum(a["masked"] for a in row) for row in runs)}
