"""Learning to predict the next token of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.data.batches import Batches
from regard.models.gradient_model import GradientModel
from regard.training.lesson import HostBatch, PartLoss


class TextLesson:
    """Windows of a text: loss = Σ -log P(target | the inputs up to it), and the model's own penalty."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.per_epoch = batches.per_epoch
        self.carries_state = batches.order == "stream"

    def at(self, index: int) -> HostBatch:
        batch = self.batches.at(index)
        tensors = tuple(torch.from_numpy(array) for array in (batch.inputs, batch.targets, batch.mask))
        return HostBatch(tensors, int(batch.mask.sum()), batch.is_fresh)

    def rate_factor(self, index: int) -> float:
        return self.batches.rate_factor(index)

    def body(self, model: GradientModel) -> Callable[..., Any]:
        # Only the body is compiled. With the chunked loss inside, torch 2.11 on a GPU compiled a step whose gradient
        # was zero: the loss stayed at ln V and nothing said so.
        return model.hidden

    def start(self, model: GradientModel, tensors: tuple[Tensor, ...]) -> Any:
        """The state before a text, spelled out where one is carried: None, then a tuple, would be compiled twice."""
        return model.start(*tensors[0].shape) if model.mixer.carries_state else None

    def loss(
        self, model: GradientModel, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any, index: int
    ) -> PartLoss:
        inputs, targets, mask = tensors
        h, after = body(inputs, before)
        nats, _ = model.nats_of(h, targets, mask)
        penalty = model.penalty_of(h, mask)
        return PartLoss(nats if penalty is None else nats + penalty, nats, after)
