"""What the training loop asks of a job: batches by number, the loss of one, and a score on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn


class HostBatch(NamedTuple):
    """A batch before it goes to the device."""

    tensors: tuple[Tensor, ...]
    """Rows first in each of them, so that a batch can be computed in parts."""
    n_tokens: int
    """How many the loss is a mean of."""
    is_fresh: bool
    """The rows begin something new: no state is carried over from the batch before."""


def pad_to(tensor: Tensor, *shape: int, value: int = 0) -> Tensor:
    """Put zeros, or another value, behind rows and columns.

    >>> pad_to(Tensor([[1, 1, 1]]), 2, 4).tolist()
    [[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    padded = tensor.new_full(shape, value)
    padded[tuple(slice(n) for n in tensor.shape)] = tensor
    return padded


class PartLoss(NamedTuple):
    """The loss of some rows."""

    goal: Tensor
    """The loss to minimise: the nats, and what is added to them while training."""
    nats: Tensor
    """Summed over the tokens."""
    after: Any
    """The state after the last tokens, where it is carried."""


@dataclass(frozen=True)
class Score:
    """An evaluation while training."""

    nats_per_token: float
    bits_per_byte: float | None
    criterion: float
    """What decides which weights are kept: the lower, the better."""
    more: Mapping[str, float] = field(default_factory=dict)
    """Other numbers for metrics.jsonl, by name."""


class Objective(Protocol):
    """Batch i for any i >= 0 and the loss of a model on it: what differs between jobs is here, and the loop is one."""

    per_epoch: int
    """Batches in one pass over the training data."""
    carries_state: bool
    """Whether the state after a batch is the state before the next."""
    flops_per_token: int
    """Forward, for each token that the loss is a mean of."""
    bytes_per_token: float | None
    unit: str = "token"
    """What the loss is a mean of, in the singular, as a person calls it: everything named "tokens" counts these."""
    has_one_shape: bool
    """Whether one batch is as large as the next."""
    cannot_replay: str = "it may ask the device for numbers on the way"
    """Why an update cannot be captured and replayed; empty where it does the same whatever the batch holds, and never
    asks the device for a number on the way."""
    select_by: str
    """Which weights are kept: those with the lowest "loss", or the highest "bleu" or "f1"."""
    memory_settings: str
    """The settings to lower when memory runs out, as an error names them."""
    n_rows: int
    """Rows of a batch, about: what memory is estimated for."""
    n_target: int
    """Tokens of a row that the loss is a mean of, about."""
    n_classes: int
    """How many answers each token is chosen from: a loss far above ln(n_classes) has exploded."""

    def identity(self) -> dict[str, Any]:
        """What must be the same when a run is resumed, by names that an error can show."""

    def read_row(self, model: Any) -> Any:
        """The model's hidden vectors for one row of typical length: what the forward pass keeps is measured."""

    def output_weight(self, model: Any) -> nn.Parameter | Tensor:
        """The matrix of the softmax layer."""

    def at(self, index: int) -> HostBatch:
        """Batch `index`: all that its loss depends on beside the weights and the state before."""

    def round_shape(self, batch: HostBatch) -> HostBatch:
        """The batch with more padding, so that few shapes serve all batches; for a GPU, where a shape costs time."""
        return batch

    def rate_factor(self, index: int) -> float:
        """What the learning rate of batch `index` is multiplied by."""
        return 1.0

    def body(self, model: Any) -> Callable[..., Any]:
        """The part of the forward pass that may be compiled."""

    def start(self, model: Any, tensors: tuple[Tensor, ...]) -> Any:
        """The state before a fresh batch."""
        return None

    def loss(self, model: Any, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        """The loss of some rows of a batch; `body` is what `body(model)` gave, compiled or not."""

    def evaluate(self, model: Any) -> Score | None:
        """The score on the validation data; None where there is none. The model is left in evaluation mode."""
