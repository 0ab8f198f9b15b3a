"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass


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
