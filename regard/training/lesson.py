"""What an update learns from: batches, and the loss of one. Text and pairs are two kinds of lessons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from torch import Tensor


class HostBatch(NamedTuple):
    """A batch before it goes to the device."""

    tensors: tuple[Tensor, ...]
    """Rows first in each of them, so that a batch can be computed in parts."""
    n_tokens: int
    """How many the loss is a mean of."""
    is_fresh: bool
    """The rows begin something new: no state is carried over from the batch before."""


class PartLoss(NamedTuple):
    """The loss of some rows."""

    goal: Tensor
    """What is made small: the nats, and what is added to them while training."""
    nats: Tensor
    """Summed over the tokens."""
    after: Any
    """The state after the last tokens, where it is carried."""


class Lesson(Protocol):
    """Batch i for any i >= 0, and how a model is taught by it."""

    per_epoch: int
    carries_state: bool
    """Whether the state after a batch is the state before the next."""

    def at(self, index: int) -> HostBatch: ...

    def rate_factor(self, index: int) -> float:
        """What the learning rate of batch `index` is multiplied by."""

    def body(self, model: Any) -> Callable[..., Any]:
        """The part of the forward pass that may be compiled."""

    def start(self, model: Any, tensors: tuple[Tensor, ...]) -> Any:
        """The state before a fresh batch."""

    def loss(
        self, model: Any, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any, index: int
    ) -> PartLoss:
        """The loss of some rows of batch `index`; `body` is what `body(model)` gave, compiled or not."""
