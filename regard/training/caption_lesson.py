"""Learning to say what is in a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.caption_batches import CaptionBatches
from regard.models.captioner import Captioner
from regard.models.seq2seq import rolled_out
from regard.training.lesson import HostBatch, PartLoss
from regard.training.scheduled_sampling import own_words, share_of_true_words
from regard.training.teaching_config import TeachingConfig


class CaptionLesson:
    """loss = Σ -log P(y_t | picture, y_1 ... y_{t-1}), smoothed; the y that are given may be the decoder's own."""

    carries_state = False

    def __init__(
        self, batches: CaptionBatches, teaching: TeachingConfig, features: Float[Tensor, "N 320 h w"] | None = None
    ) -> None:
        """`features` are of all pictures, where the encoder never changes: they are shown instead of the pictures."""
        self.batches, self.teaching, self.features = batches, teaching, features
        self.per_epoch = batches.per_epoch

    def at(self, index: int) -> HostBatch:
        if self.features is None:
            batch = self.batches.at(index)
            seen, arrays = torch.from_numpy(batch.pictures), (batch.inputs, batch.targets, batch.mask)
        else:
            _, rows = self.batches.rows(index)
            seen, arrays = self.features[self.batches.numbers[rows]], self.batches.captions(rows)
        return HostBatch((seen, *map(torch.from_numpy, arrays)), int(arrays[2].sum()), is_fresh=True)

    def rate_factor(self, index: int) -> float:
        return 1.0

    def body(self, model: Captioner) -> Callable[..., Any]:
        def read(seen: Tensor, inputs: Tensor) -> Any:
            return model.target.hidden(inputs, model.encode(seen))[0]

        return read

    def start(self, model: Captioner, tensors: tuple[Tensor, ...]) -> None:
        return None

    def loss(
        self, model: Captioner, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any, index: int
    ) -> PartLoss:
        seen, inputs, targets, mask = tensors
        share_true = share_of_true_words(self.teaching, index)
        if share_true == 1:
            h = body(seen, inputs)
        else:
            is_own = own_words((inputs.shape[0], inputs.shape[1]), share_true, inputs.device)
            h = rolled_out(model.target, model.encode(seen), inputs, is_own)
        return PartLoss(*model.target.goal_of(h, targets, mask, self.teaching.smoothing), None)
