"""A model that reads sources and writes targets."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from regard.data.pair_batches import PairBatches, read_in_order
from regard.data.pairs import MaxLengths, Pairs
from regard.data.prepared_pairs import PreparedPairs
from regard.decode.config import BeamConfig
from regard.decode.translate import Translator
from regard.layers.any_shape import attention_of_any_shape
from regard.models.seq2seq import Seq2Seq
from regard.parsing import Parser, brackets_of
from regard.score.translation import bleu
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.lesson import Lesson
from regard.training.memory import MemoryEstimate, pair_estimate
from regard.training.optimizer import highest_rate
from regard.training.pair_lesson import PairLesson
from regard.training.task import Score
from regard.training.teaching_config import TeachingConfig


class PairTask:
    """Write the targets of `prepared.train`; judged by the nats a token of `prepared.valid`, by BLEU or by F1."""

    sizes = "teaching.max_tokens"

    def __init__(
        self,
        model: Seq2Seq,
        prepared: PreparedPairs,
        train: TrainConfig,
        teaching: TeachingConfig,
        seed: int,
        max_length: int | None = None,
        tree_words: str | None = None,
        skips_bad: bool = False,
    ) -> None:
        """`max_length`: longer pairs are not learned from; `tree_words`: the form of targets that are trees.

        `skips_bad`: neither are those that a batch has no room for.
        """
        assert tree_words is not None or teaching.judged_by != "f1", "the config allows F1 of trees alone"
        self.tree_words = tree_words
        self.prepared, self.train, self.teaching, self.seed = prepared, train, teaching, seed
        self.copies = model.copies
        self.valid = readable_pairs(model, prepared.valid)
        self.batches = PairBatches(
            prepared.train,
            max_tokens=teaching.max_tokens,
            seed=seed,
            max_lengths=room_of(model).within(max_length),
            p_bpe_dropout=teaching.p_bpe_dropout,
            copies=self.copies,
            skips_bad=skips_bad,
        )
        self.lesson: Lesson = PairLesson(self.batches, teaching)
        self.judged_by, self.fingerprint = teaching.judged_by, prepared.fingerprint
        pairs = self.batches.pairs
        self.n_source = max(1, round(float(pairs.source_lengths.mean())))
        self.n_target = max(1, round(float(pairs.target_lengths.mean()) + 1))
        # Sources cost too, but the loss is a mean over target tokens: each pays for its share of the source.
        self.flops_per_token = model.flops_per_pair(self.n_source, self.n_target) // self.n_target
        n_tokens = int(pairs.target_lengths.sum()) + len(pairs)
        self.bytes_per_token: float | None = pairs.n_bytes / n_tokens if n_tokens else None
        self.has_one_shape = False
        self.is_recurrent = model.bridge is not None

    def identity(self) -> dict[str, Any]:
        return {
            "data": self.fingerprint,
            "seed": self.seed,
            "max_tokens": self.teaching.max_tokens,
            "n_accumulate": self.train.n_accumulate,
            "average": self.train.average,
        }

    def highest_rate(self, optimizer: OptimizerConfig) -> float:
        return highest_rate(optimizer, self.is_recurrent)

    def memory(self, model: Seq2Seq, optimizer: OptimizerConfig, runtime: RuntimeConfig) -> MemoryEstimate:
        n_pairs = max(1, self.teaching.max_tokens // (self.n_source + self.n_target))
        return pair_estimate(model, n_pairs, self.n_source, self.n_target, self.train, optimizer, runtime)

    def evaluate(self, model: Seq2Seq) -> Score | None:
        valid = self.valid
        if not len(valid):
            return None
        nats, n_tokens = summed_nats(model, valid, self.teaching.max_tokens)
        bits = nats / math.log(2) / valid.n_bytes if valid.n_bytes else None
        if self.teaching.judged_by == "loss":
            return Score(nats / n_tokens, bits, judged=nats / n_tokens)
        judges, some = {"bleu": greedy_bleu, "f1": self._greedy_f1}, valid.some(self.teaching.max_judged)
        score = judges[self.teaching.judged_by](model, some, self.teaching.max_tokens)
        return Score(nats / n_tokens, bits, judged=-score, more={self.teaching.judged_by: score})

    def _greedy_f1(self, model: Seq2Seq, pairs: Pairs, max_tokens: int) -> float:
        """Labelled F1, in per cent, of the likeliest brackets, one after the other."""
        assert self.tree_words is not None
        config, tokenizers = BeamConfig(beam=1), (pairs.source.tokenizer, pairs.target.tokenizer)
        parser = Parser([model], *tokenizers, self.tree_words, config, max_tokens=max_tokens)
        return 100 * brackets_of(parser, pairs).f1


def room_of(model: Seq2Seq) -> MaxLengths:
    """The longest pairs that a model can learn from and be scored on."""
    n_target = model.target.max_context
    return MaxLengths(model.encoder.max_context, None if n_target is None else n_target - 1)  # <eos> needs a place


def readable_pairs(model: Seq2Seq, pairs: Pairs) -> Pairs:
    """Those that the model has room for."""
    return pairs.fitting(room_of(model))


def greedy_bleu(model: Seq2Seq, pairs: Pairs, max_tokens: int) -> float:
    """BLEU of the likeliest words, one after the other."""
    numbers, config = range(len(pairs)), BeamConfig(beam=1, max_ratio=2.0)
    translator = Translator([model], pairs.source.tokenizer, pairs.target.tokenizer, config)
    found = translator.all([translator.read(pairs.source_text(i), pairs.tag(i)) for i in numbers], max_tokens)
    return bleu([best[0].text for best in found], [pairs.target_text(i) for i in numbers]).score


@torch.inference_mode()
@attention_of_any_shape()
def summed_nats(model: Seq2Seq, pairs: Pairs, max_tokens: int) -> tuple[float, int]:
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
        h, _ = model.hidden(inputs, model.encode(source, source_mask, words))
        total += float(model.nats_each(h, targets).double().masked_fill(~mask, 0.0).sum())
        n_tokens += int(batch.mask.sum())
    return total, n_tokens
