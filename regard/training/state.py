"""What a run remembers between two updates, apart from tensors, and how it ended."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Self

from regard.untrusted.fields import FieldError, decode_fields


@dataclass
class TrainState:
    """Counters of a run, the part of a checkpoint that is JSON: plain numbers, which it gives back as they were."""

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
    scores: list[float] = field(default_factory=list)  # the criterion of every evaluation; lower is better
    # The plateau schedule.
    n_since_drop: int = 0
    n_drops: int = 0
    # The rule against exploding losses.
    lowest_nats: float | None = None
    n_high: int = 0
    # Sums since the last training line of metrics.jsonl.
    window_nats: float = 0.0
    window_tokens: int = 0
    metrics_offset: int = 0
    n_threads: int | None = None
    """CPU threads, where they were chosen by load: with another number sums are rounded in another order."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """Raises FieldError where one is unknown or wrong. Version 0.1.0 measured the speed of a window in two more."""
        if not isinstance(given, dict):
            raise FieldError("'state' must be an object")
        old = ("window_seconds", "window_timed_tokens")
        found = decode_fields(cls, {name: value for name, value in given.items() if name not in old})
        if min(found.step, found.tokens, found.flops, found.n_since_best, found.n_drops, found.metrics_offset) < 0:
            raise FieldError("'state' counts less than nothing")
        if math.isnan(found.seconds) or found.seconds < 0:
            raise FieldError("'seconds' must be a number, 0 or more")
        return found


@dataclass(frozen=True)
class TrainResult:
    """`reason` is the limit reached, "patience", "interrupted", or "end of text" for what is counted.

    The scores are the best on the validation text, None where there is none.
    """

    reason: str
    step: int
    tokens: int
    flops: int
    seconds: float
    best_step: int | None = None
    nats_per_token: float | None = None
    bits_per_byte: float | None = None

    @property
    def is_finished(self) -> bool:
        return self.reason != "interrupted"
