"""Learning to say what is in a picture: batches of captions, the loss, and the score on pictures that were held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.caption_batches import CaptionBatches, pad_captions
from regard.data.prepared_captions import CaptionSet, PreparedCaptions
from regard.decode.caption import MAX_LENGTH, write_captions
from regard.decode.config import BeamConfig
from regard.models.captioner import Captioner
from regard.models.efficientnet_lite import D_TRUNK
from regard.models.seq2seq import roll_out
from regard.score.translation import BleuScore, bleu
from regard.training.config import TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score, pad_to
from regard.training.scheduled_sampling import own_words, tell_share
from regard.training.teaching_config import TeachingConfig

N_PICTURES = 32
"""Pictures that are looked at together outside of training."""

Features = Float[Tensor, "N 320 h w"]


class CaptionObjective(Objective):
    """loss = Σ -log P(y_t | picture, y_1 ... y_{t-1}), smoothed; the y that are given may be the decoder's own.

    Weights are selected by the nats a token of the validation captions, or by BLEU.
    """

    memory_settings = "train.n_batch or data.size"
    carries_state = False
    has_one_shape = False
    cannot_replay = ""

    def __init__(
        self,
        model: Captioner,
        prepared: PreparedCaptions,
        train: TrainConfig,
        teaching: TeachingConfig,
        seed: int,
        features: Features | None = None,
    ) -> None:
        """`features` are of all pictures, where the encoder is frozen: they are shown instead of the pictures."""
        self.prepared, self.train, self.teaching, self.seed, self.features = prepared, train, teaching, seed, features
        self.select_by = teaching.select_by
        self.batches = CaptionBatches(
            prepared.data,
            prepared.data.train,
            prepared.tokenizer,
            n_batch=train.n_batch,
            seed=seed,
            max_tokens=model.max_context,
        )
        self.per_epoch = self.batches.per_epoch
        lengths = [len(ids) for ids in self.batches.ids]
        self.n_rows, self.n_target = train.n_batch, max(1, round(sum(lengths) / len(lengths)))
        self.n_classes, self.max_words = model.vocab_size, model.max_context
        # A picture costs too, but the loss is a mean over words: each pays for its share of the picture.
        self.flops_per_token = model.flops_per_caption(self.n_target) // self.n_target
        self.bytes_per_token: float | None = prepared.data.train.n_bytes / sum(lengths)

    def identity(self) -> dict[str, Any]:
        return {
            "data": self.prepared.fingerprint,
            "seed": self.seed,
            "n_batch": self.train.n_batch,
            "n_accumulate": self.train.n_accumulate,
            "average": self.train.average,
        }

    def read_row(self, model: Captioner) -> Any:
        device, encoder = model.embedding.device, model.encoder
        inputs = torch.zeros(1, self.n_target, dtype=torch.int64, device=device)
        seen = torch.zeros(1, 3, encoder.size, encoder.size, dtype=torch.uint8, device=device)
        if self.features is not None:  # the encoder's trunk was run before
            seen = torch.zeros(1, D_TRUNK, *encoder.grid, device=device)
        return model.target.hidden(inputs, model.encode(seen))[0]

    def output_weight(self, model: Captioner) -> Tensor:
        return model.target.output_weight

    def at(self, index: int) -> HostBatch:
        if self.features is None:
            batch = self.batches.at(index)
            seen, arrays = torch.from_numpy(batch.pictures), (batch.inputs, batch.targets, batch.mask)
        else:
            _, rows = self.batches.rows(index)
            seen, arrays = self.features[self.batches.numbers[rows]], self.batches.captions(rows)
        share = tell_share(self.teaching, index, len(seen))
        return HostBatch((seen, *map(torch.from_numpy, arrays), *share), int(arrays[2].sum()), is_fresh=True)

    def round_shape(self, batch: HostBatch) -> HostBatch:
        """Captions up to a multiple of 4 words; batches have as many rows as the others already."""
        seen, inputs, targets, mask, *share = batch.tensors
        n_words = -(-inputs.shape[1] // 4) * 4
        n_words = n_words if self.max_words is None else min(n_words, self.max_words)
        captions = (pad_to(tensor, len(tensor), n_words) for tensor in (inputs, targets, mask))
        return batch._replace(tensors=(seen, *captions, *share))

    def body(self, model: Captioner) -> Callable[..., Any]:
        def read(seen: Tensor, inputs: Tensor) -> Any:
            return model.target.hidden(inputs, model.encode(seen))[0]

        return read

    def loss(self, model: Captioner, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        seen, inputs, targets, mask, *share = tensors
        if not share:
            h = body(seen, inputs)
        else:
            is_own = own_words(share[0], inputs.shape[1])
            h = roll_out(model.target, model.encode(seen), inputs, is_own)
        return PartLoss(*model.target.goal_of(h, targets, mask, self.teaching.smoothing), None)

    def evaluate(self, model: Captioner) -> Score | None:
        valid = self.prepared.data.valid
        if not len(valid):
            return None
        nats, n_tokens = sum_caption_nats(model, self.prepared, valid, self.features)
        bits = nats / math.log(2) / valid.n_bytes
        if self.select_by == "loss":
            return Score(nats / n_tokens, bits, criterion=nats / n_tokens)
        some, greedy = valid.first(self.teaching.max_select_items), BeamConfig(beam=1, max_length=MAX_LENGTH)
        score = caption_bleu(model, self.prepared, some, greedy, self.features).score
        return Score(nats / n_tokens, bits, criterion=-score, more={"bleu": score})


def caption_bleu(
    model: Captioner,
    prepared: PreparedCaptions,
    split: CaptionSet,
    config: BeamConfig,
    features: Features | None = None,
    tell: Callable[[int], None] | None = None,
) -> BleuScore:
    """BLEU of the best captions against all that people said of each picture; upper and lower case are the same.

    `tell` is told after every batch how many pictures have a caption.
    """
    texts: list[str] = []
    for _, seen in _show(prepared, split, features):
        texts += [best[0].text for best in write_captions(model, prepared.tokenizer, seen, config)]
        if tell is not None:
            tell(len(texts))
    return bleu(texts, split.captions, is_lowercase=True)


@torch.inference_mode()
def sum_caption_nats(
    model: Captioner, prepared: PreparedCaptions, split: CaptionSet, features: Features | None = None
) -> tuple[float, int]:
    """Σ -log P(caption | picture) over all captions, ends included, and the number of tokens."""
    model.eval()
    tokenizer, device = prepared.tokenizer, model.embedding.device
    total, n_tokens = 0.0, 0
    for part, seen in _show(prepared, split, features):
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


def _show(prepared: PreparedCaptions, split: CaptionSet, features: Features | None) -> Iterator[tuple[slice, Tensor]]:
    """Which pictures of a split, and what a model is shown of them, batch by batch."""
    for first in range(0, len(split), N_PICTURES):
        part = slice(first, first + N_PICTURES)
        numbers = split.numbers[part]
        seen = torch.from_numpy(prepared.data.squares(numbers)) if features is None else features[list(numbers)]
        yield part, seen
