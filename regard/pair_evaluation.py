"""The score of a model of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.parsing import ParseScore
from regard.score.target_loss import TargetLoss
from regard.score.translation import BleuScore, ChrfScore


@dataclass(frozen=True, kw_only=True)
class PairEvaluation(TargetLoss):
    """How well targets are predicted, and how good the translations or parses are; None where none were made."""

    n_pairs: int
    n_left_out: int = 0
    """Pairs that are longer than the model reads; they count nowhere."""
    bleu: BleuScore | None = None
    chrf: ChrfScore | None = None
    parses: ParseScore | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines that could not be used and were left out, by kind."""

    def to_dict(self) -> dict[str, Any]:
        counts = ("n_tokens", "n_bytes", "n_pairs", "n_left_out")
        names = ("nats", *counts, "nats_per_token", "perplexity", "bits_per_byte")
        scores = {"bleu": self.bleu, "chrf": self.chrf, "parses": self.parses}
        found = {name: getattr(self, name) for name in names} | {"skipped": dict(self.skipped)}
        return found | {name: score.to_dict() for name, score in scores.items() if score is not None}
