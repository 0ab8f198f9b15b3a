"""How well targets are predicted from what they belong to: a source, or a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from regard.score.evaluate import finite_perplexity
from regard.score.measured import Figure


@dataclass(frozen=True, kw_only=True)
class TargetLoss:
    """Nats summed over targets, and how long these are in tokens and bytes."""

    nats: float
    n_tokens: int
    n_bytes: int
    notes: tuple[str, ...] = ()
    """What has to be known to read the scores."""

    @property
    def nats_per_token(self) -> float:
        return self.nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        return finite_perplexity(self.nats_per_token)

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / self.n_bytes

    def plain(self, *counts: str) -> dict[str, Any]:
        """Plain values for JSON; `counts` are further fields that say how much was scored."""
        names = ("nats", "n_tokens", "n_bytes", *counts, "nats_per_token", "perplexity", "bits_per_byte")
        return {name: getattr(self, name) for name in names}

    def figures(self) -> tuple[Figure, ...]:
        return Figure("loss, nats a token", self.nats_per_token, 4), Figure("perplexity a token", self.perplexity)
