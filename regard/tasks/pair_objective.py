"""Learning to write the target of a source: batches of pairs, the loss, and the score on pairs that were held out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regard.data.pair_batches import PairBatches, read_in_order
from regard.data.pairs import MaxLengths, Pairs
from regard.data.prepared_pairs import PreparedPairs
from regard.data.shapes import MAX_SHAPES_SEEN, FewShapes
from regard.kernels.device import sdpa_backend_for_any_shape
from regard.models.seq2seq import Seq2Seq, roll_out
from regard.training.config import TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score, pad_to
from regard.training.scheduled_sampling import own_words, tell_share
from regard.training.teaching_config import TeachingConfig

GreedyScore = Callable[[Seq2Seq, Pairs, int], float]
"""A score in per cent of what a model writes greedily for some pairs, in batches of so many tokens."""


class PairObjective(Objective):
    """loss = Σ -log P(y_t | source, y_1 ... y_{t-1}), smoothed; the y that are given may be the decoder's own.

    Weights are selected by the nats a token of `prepared.valid`, or by `greedy_score`.
    """

    memory_settings = "teaching.max_tokens"
    carries_state = False
    has_one_shape = False

    def __init__(
        self,
        model: Seq2Seq,
        prepared: PreparedPairs,
        train: TrainConfig,
        teaching: TeachingConfig,
        seed: int,
        *,
        max_length: int | None = None,
        skips_bad: bool = False,
        greedy_score: GreedyScore | None = None,
    ) -> None:
        """`max_length`: longer pairs are not learned from; `skips_bad`: nor are those that a batch has no room for."""
        self.prepared, self.train, self.teaching, self.seed = prepared, train, teaching, seed
        self.greedy_score, self.select_by = greedy_score, teaching.select_by
        self.valid = readable_pairs(model, prepared.valid)
        self.batches = PairBatches(
            prepared.train,
            max_tokens=teaching.max_tokens,
            seed=seed,
            max_lengths=find_room(model).within(max_length),
            p_bpe_dropout=teaching.p_bpe_dropout,
            copies=model.copies,
            skips_bad=skips_bad,
        )
        self.per_epoch = self.batches.per_epoch
        pairs = self.batches.pairs
        self.n_source = max(1, round(float(pairs.source_lengths.mean())))
        self.n_target = max(1, round(float(pairs.target_lengths.mean()) + 1))
        self.n_rows = max(1, teaching.max_tokens // (self.n_source + self.n_target))
        self.n_classes = model.vocab_size
        self.max_source, self.max_target = model.encoder.max_context, model.target.max_context
        self.copies, self.cannot_replay = model.copies, "each asks how many words can be copied" if model.copies else ""
        # Sources cost too, but the loss is a mean over target tokens: each pays for its share of the source.
        self.flops_per_token = model.flops_per_pair(self.n_source, self.n_target) // self.n_target
        n_tokens = int(pairs.target_lengths.sum()) + len(pairs)
        self.bytes_per_token: float | None = pairs.n_bytes / n_tokens if n_tokens else None

    def identity(self) -> dict[str, Any]:
        return {
            "data": self.prepared.fingerprint,
            "seed": self.seed,
            "max_tokens": self.teaching.max_tokens,
            "n_accumulate": self.train.n_accumulate,
            "average": self.train.average,
        }

    def read_row(self, model: Seq2Seq) -> Any:
        source = torch.zeros(1, self.n_source, dtype=torch.int64, device=model.embedding.device)
        words = torch.zeros_like(source) if model.copies else None
        inputs = torch.zeros(1, self.n_target, dtype=torch.int64, device=model.embedding.device)
        return model.target.hidden(inputs, model.encode(source, torch.ones_like(source, dtype=torch.bool), words))[0]

    def output_weight(self, model: Seq2Seq) -> Tensor:
        return model.target.output_weight

    def at(self, index: int) -> HostBatch:
        batch = self.batches.at(index)
        arrays = [batch.source, batch.source_mask, batch.inputs, batch.targets, batch.mask]
        if batch.words is not None:
            arrays.append(batch.words)
        share = tell_share(self.teaching, index, len(batch.source))
        return HostBatch((*map(torch.from_numpy, arrays), *share), int(batch.mask.sum()), is_fresh=True)

    def round_shape(self, batch: HostBatch) -> HostBatch:
        source, source_mask, inputs, targets, mask, *share = batch.tensors
        n_rows, n_source, n_target = self._shapes.fit((len(source), source.shape[1], inputs.shape[1]))
        n_source, n_target = min(n_source, self.max_source or n_source), min(n_target, self.max_target or n_target)
        tensors = [pad_to(tensor, n_rows, n_source) for tensor in (source, source_mask)]
        tensors[1][len(source_mask) :, 0] = True  # attention over nothing would be no number
        tensors += [pad_to(tensor, n_rows, n_target) for tensor in (inputs, targets, mask)]
        return batch._replace(tensors=(*tensors, *(pad_to(tensor, n_rows, *tensor.shape[1:]) for tensor in share)))

    @cached_property
    def _shapes(self) -> FewShapes:
        """Those that the first batches need: the same whenever a run is taken up again."""
        seen = [self.batches.shape(index) for index in range(min(2 * self.per_epoch, MAX_SHAPES_SEEN))]
        return FewShapes(seen, lambda shape: shape[..., 0] * (shape[..., 1] + shape[..., 2]))

    def body(self, model: Seq2Seq) -> Callable[..., Any]:
        def read(source: Tensor, source_mask: Tensor, inputs: Tensor, words: Tensor | None) -> Any:
            return model.target.hidden(inputs, model.encode(source, source_mask, words))[0]

        return read

    def loss(self, model: Seq2Seq, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        source, source_mask, inputs, targets, mask, *rest = tensors
        words = rest.pop(0) if self.copies else None
        if not rest:
            h = body(source, source_mask, inputs, words)
        else:
            is_own = own_words(rest[0], inputs.shape[1])
            h = roll_out(model.target, model.encode(source, source_mask, words), inputs, is_own)
        return PartLoss(*model.target.goal_of(h, targets, mask, self.teaching.smoothing), None)

    def evaluate(self, model: Seq2Seq) -> Score | None:
        valid = self.valid
        if not len(valid):
            return None
        nats, n_tokens = sum_nats(model, valid, self.teaching.max_tokens)
        bits = nats / math.log(2) / valid.n_bytes if valid.n_bytes else None
        if self.greedy_score is None:
            return Score(nats / n_tokens, bits, criterion=nats / n_tokens)
        score = self.greedy_score(model, valid.take_evenly(self.teaching.max_select_items), self.teaching.max_tokens)
        return Score(nats / n_tokens, bits, criterion=-score, more={self.select_by: score})


def find_room(model: Seq2Seq) -> MaxLengths:
    """The longest pairs that a model can learn from and be scored on."""
    n_target = model.target.max_context
    return MaxLengths(model.encoder.max_context, None if n_target is None else n_target - 1)  # <eos> needs a place


def readable_pairs(model: Seq2Seq, pairs: Pairs) -> Pairs:
    """Those that the model has room for."""
    return pairs.select_fitting(find_room(model))


@torch.inference_mode()
@sdpa_backend_for_any_shape()
def sum_nats(model: Seq2Seq, pairs: Pairs, max_tokens: int) -> tuple[float, int]:
    """Σ -log P(target | source) over all pairs, ends included, and the number of tokens; evaluation mode is left on."""
    model.eval()
    device, total, n_tokens = model.embedding.device, 0.0, 0
    longest = int((pairs.source_lengths + pairs.target_lengths).max()) + 1
    for _, batch in read_in_order(pairs, max(max_tokens, longest), copies=model.copies):
        source, source_mask, inputs, targets, mask = (
            torch.from_numpy(array).to(device)
            for array in (batch.source, batch.source_mask, batch.inputs, batch.targets, batch.mask)
        )
        words: Tensor | None = None if batch.words is None else torch.from_numpy(batch.words).to(device)
        h, _ = model.target.hidden(inputs, model.encode(source, source_mask, words))
        total += float(model.target.nats_each(h, targets).double().masked_fill(~mask, 0.0).sum())
        n_tokens += int(batch.mask.sum())
    return total, n_tokens
