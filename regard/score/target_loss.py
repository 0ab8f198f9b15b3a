"""How well targets are predicted from what they belong to: a source, or a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

from regard.score.evaluate import finite_perplexity


@dataclass(frozen=True, kw_only=True)
class TargetLoss:
    """Nats summed over targets, and how long these are in tokens and bytes."""

    nats: float
    n_tokens: int
    n_bytes: int

    @property
    def nats_per_token(self) -> float:
        return self.nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        return finite_perplexity(self.nats_per_token)

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / self.n_bytes
