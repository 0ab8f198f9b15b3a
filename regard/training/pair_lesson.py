"""Learning to give a target for a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.data.pair_batches import PairBatches
from regard.models.seq2seq import Seq2Seq, rolled_out
from regard.training.lesson import HostBatch, PartLoss
from regard.training.scheduled_sampling import own_words, share_of_true_words
from regard.training.teaching_config import TeachingConfig


class PairLesson:
    """loss = Σ -log P(y_t | source, y_1 ... y_{t-1}), smoothed; the y that are given may be the decoder's own."""

    carries_state = False

    def __init__(self, batches: PairBatches, teaching: TeachingConfig) -> None:
        self.batches, self.teaching = batches, teaching
        self.per_epoch = batches.per_epoch

    def at(self, index: int) -> HostBatch:
        batch = self.batches.at(index)
        arrays = [batch.source, batch.source_mask, batch.inputs, batch.targets, batch.mask]
        if batch.words is not None:
            arrays.append(batch.words)
        return HostBatch(tuple(torch.from_numpy(array) for array in arrays), int(batch.mask.sum()), is_fresh=True)

    def rate_factor(self, index: int) -> float:
        return 1.0

    def body(self, model: Seq2Seq) -> Callable[..., Any]:
        def read(source: Tensor, source_mask: Tensor, inputs: Tensor, words: Tensor | None) -> Any:
            return model.hidden(inputs, model.encode(source, source_mask, words))[0]

        return read

    def start(self, model: Seq2Seq, tensors: tuple[Tensor, ...]) -> None:
        return None

    def loss(
        self, model: Seq2Seq, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any, index: int
    ) -> PartLoss:
        source, source_mask, inputs, targets, mask, *rest = tensors
        words = rest[0] if rest else None
        share_true = share_of_true_words(self.teaching, index)
        if share_true == 1:
            h = body(source, source_mask, inputs, words)
        else:
            is_own = own_words((inputs.shape[0], inputs.shape[1]), share_true, inputs.device)
            h = rolled_out(model, model.encode(source, source_mask, words), inputs, is_own)
        return PartLoss(*model.goal_of(h, targets, mask, self.teaching.smoothing), None)
