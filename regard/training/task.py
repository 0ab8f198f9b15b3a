"""What a run is about, as the training loop sees it: a lesson to learn, and a score on what is not learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from regard.training.config import OptimizerConfig, RuntimeConfig
from regard.training.lesson import Lesson
from regard.training.memory import MemoryEstimate


@dataclass(frozen=True)
class Score:
    """An evaluation while training."""

    nats_per_token: float
    bits_per_byte: float | None
    criterion: float
    """What decides which weights are kept: the lower, the better."""
    more: Mapping[str, float] = field(default_factory=dict)
    """Other numbers for metrics.jsonl, by name."""


class Task(Protocol):
    """Text to continue, or pairs to translate: what differs is here, and the loop is one."""

    lesson: Lesson
    fingerprint: str
    """Stands for the data."""
    flops_per_token: int
    """Forward, for each token that the loss is a mean of."""
    bytes_per_token: float | None
    has_one_shape: bool
    """Whether one batch is as large as the next."""
    select_by: str
    """What selects the best weights: "loss", or "bleu" or "f1", of which `Score.criterion` is the negative."""
    sizes: str
    """The settings that make a batch smaller, for who has too little memory."""

    def identity(self) -> dict[str, Any]:
        """What must be the same when a run is resumed, by names that an error can show."""

    def highest_rate(self, optimizer: OptimizerConfig) -> float: ...

    def memory(self, model: Any, optimizer: OptimizerConfig, runtime: RuntimeConfig) -> MemoryEstimate: ...

    def evaluate(self, model: Any) -> Score | None:
        """The score on the validation data; None where there is none. The model is left in evaluation mode."""
