"""What a run remembers between two updates, apart from tensors: the part of a checkpoint that is JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class TrainState:
    """Counters of a run. Every field is plain numbers, so that JSON gives back exactly what was put in."""

    step: int = 0  # finished updates; also the position in the data: update i reads batch i
    tokens: int = 0
    flops: int = 0
    seconds: float = 0.0  # of training; evaluation and saving do not count
    # The best evaluation, and how many have passed since (early stopping).
    best_step: int | None = None
    best_nats_per_token: float | None = None
    best_bits_per_byte: float | None = None
    n_since_best: int = 0
    last_eval_step: int | None = None
    scores: list[float] = field(default_factory=list)  # what every evaluation was judged by; lower is better
    # The plateau schedule.
    n_since_drop: int = 0
    n_drops: int = 0
    # The rule against exploding losses.
    lowest_nats: float | None = None
    n_high: int = 0
    # Sums since the last training line of metrics.jsonl.
    window_nats: float = 0.0
    window_tokens: int = 0
    window_seconds: float = 0.0
    window_timed_tokens: int = 0  # those that window_seconds is the time of
    metrics_offset: int = 0

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """Raises TypeError where a field is unknown."""
        return cls(**given)
