"""The score of a model of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.parsing import ParseScore
from regard.score.evaluate import finite_perplexity
from regard.score.translation import BleuScore, ChrfScore


@dataclass(frozen=True, kw_only=True)
class PairEvaluation:
    """How well targets are predicted, and how good the translations or parses are; None where none were made."""

    nats: float
    n_tokens: int
    n_bytes: int
    n_pairs: int
    n_left_out: int = 0
    """Pairs that are longer than the model reads; they count nowhere."""
    bleu: BleuScore | None = None
    chrf: ChrfScore | None = None
    parses: ParseScore | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines that could not be used and were left out, by kind."""

    @property
    def nats_per_token(self) -> float:
        return self.nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        return finite_perplexity(self.nats_per_token)

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / self.n_bytes

    def to_dict(self) -> dict[str, Any]:
        counts = ("n_tokens", "n_bytes", "n_pairs", "n_left_out")
        names = ("nats", *counts, "nats_per_token", "perplexity", "bits_per_byte")
        scores = {"bleu": self.bleu, "chrf": self.chrf, "parses": self.parses}
        found = {name: getattr(self, name) for name in names} | {"skipped": dict(self.skipped)}
        return found | {name: score.to_dict() for name, score in scores.items() if score is not None}
