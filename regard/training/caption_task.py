"""A model that describes pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.caption_batches import CaptionBatches, pad_captions
from regard.data.prepared_captions import CaptionSet, PreparedCaptions
from regard.decode.caption import MAX_LENGTH, captions_of
from regard.decode.config import BeamConfig
from regard.models.captioner import Captioner
from regard.score.translation import BleuScore, bleu
from regard.training.caption_lesson import CaptionLesson
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.lesson import Lesson
from regard.training.memory import MemoryEstimate, caption_estimate
from regard.training.optimizer import highest_rate
from regard.training.task import Score
from regard.training.teaching_config import TeachingConfig

N_PICTURES = 32
"""Pictures that are looked at together outside of training."""

Features = Float[Tensor, "N 320 h w"]


class CaptionTask:
    """Write the captions of the training pictures; judged by the nats a token of the validation captions, or BLEU."""

    sizes = "train.n_batch or data.size"

    def __init__(
        self,
        model: Captioner,
        prepared: PreparedCaptions,
        train: TrainConfig,
        teaching: TeachingConfig,
        seed: int,
        features: Features | None = None,
    ) -> None:
        """`features` are of all pictures, where the encoder is frozen and sees each of them in one way only."""
        self.prepared, self.train, self.teaching, self.seed, self.features = prepared, train, teaching, seed, features
        self.batches = CaptionBatches(
            prepared.data,
            prepared.data.train,
            prepared.tokenizer,
            n_batch=train.n_batch,
            seed=seed,
            max_tokens=model.max_context,
        )
        self.lesson: Lesson = CaptionLesson(self.batches, teaching, features)
        self.judged_by, self.fingerprint = teaching.judged_by, prepared.fingerprint
        lengths = [len(ids) for ids in self.batches.ids]
        self.n_target = max(1, round(sum(lengths) / len(lengths)))
        # A picture costs too, but the loss is a mean over words: each pays for its share of the picture.
        self.flops_per_token = model.flops_per_caption(self.n_target) // self.n_target
        self.bytes_per_token: float | None = prepared.data.train.n_bytes / sum(lengths)
        self.has_one_shape = False
        self.is_recurrent = model.bridge is not None

    def identity(self) -> dict[str, Any]:
        return {
            "data": self.fingerprint,
            "seed": self.seed,
            "n_batch": self.train.n_batch,
            "n_accumulate": self.train.n_accumulate,
            "average": self.train.average,
        }

    def highest_rate(self, optimizer: OptimizerConfig) -> float:
        return highest_rate(optimizer, self.is_recurrent)

    def memory(self, model: Captioner, optimizer: OptimizerConfig, runtime: RuntimeConfig) -> MemoryEstimate:
        has_features = self.features is not None
        return caption_estimate(model, has_features, self.n_target, self.train, optimizer, runtime)

    def evaluate(self, model: Captioner) -> Score | None:
        valid = self.prepared.data.valid
        if not len(valid):
            return None
        nats, n_tokens = summed_caption_nats(model, self.prepared, valid, self.features)
        bits = nats / math.log(2) / valid.n_bytes
        if self.teaching.judged_by == "loss":
            return Score(nats / n_tokens, bits, judged=nats / n_tokens)
        some, greedy = valid.first(self.teaching.max_judged), BeamConfig(beam=1, max_length=MAX_LENGTH)
        score = caption_bleu(model, self.prepared, some, greedy, self.features).score
        return Score(nats / n_tokens, bits, judged=-score, more={"bleu": score})


def caption_bleu(
    model: Captioner,
    prepared: PreparedCaptions,
    split: CaptionSet,
    config: BeamConfig,
    features: Features | None = None,
) -> BleuScore:
    """BLEU of the best captions against all that people said of each picture; upper and lower case are the same."""
    texts = [
        best[0].text
        for _, seen in _shown(prepared, split, features)
        for best in captions_of(model, prepared.tokenizer, seen, config)
    ]
    return bleu(texts, split.captions, is_lowercase=True)


@torch.inference_mode()
def summed_caption_nats(
    model: Captioner, prepared: PreparedCaptions, split: CaptionSet, features: Features | None = None
) -> tuple[float, int]:
    """Σ -log P(caption | picture) over all captions, ends included, and the number of tokens."""
    model.eval()
    tokenizer, device = prepared.tokenizer, model.embedding.device
    total, n_tokens = 0.0, 0
    for part, seen in _shown(prepared, split, features):
        captions = [
            np.append(tokenizer.encode(text), tokenizer.eos)[: model.max_context].astype(np.int64)
            for texts in split.captions[part]
            for text in texts
        ]
        inputs, targets, mask = (torch.from_numpy(array).to(device) for array in pad_captions(captions, tokenizer.eos))
        source = model.encode(seen.to(device))  # each picture once, however many captions it has
        of_picture = np.repeat(np.arange(len(seen)), [len(texts) for texts in split.captions[part]])
        h, _ = model.target.hidden(inputs, source.rows(torch.from_numpy(of_picture).to(device)))
        total += float(model.target.nats_each(h, targets).double().masked_fill(~mask, 0.0).sum())
        n_tokens += int(mask.sum())
    return total, n_tokens


def _shown(prepared: PreparedCaptions, split: CaptionSet, features: Features | None) -> Iterator[tuple[slice, Tensor]]:
    """Which pictures of a split, and what a model is shown of them, batch by batch."""
    for first in range(0, len(split), N_PICTURES):
        part = slice(first, first + N_PICTURES)
        numbers = split.numbers[part]
        seen = torch.from_numpy(prepared.data.squares(numbers)) if features is None else features[list(numbers)]
        yield part, seen
