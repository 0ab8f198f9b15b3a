"""Learning to predict the words of a text from its two ends: which windows are read, and the loss on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import Batches
from regard.data.prepared_text import PreparedText
from regard.data.stream import Stream
from regard.layers.copying import UNK
from regard.models.elmo import DIRECTIONS, BothWays, Elmo
from regard.score.evaluate import Evaluation, finite_perplexity
from regard.score.two_way import TwoWayEvaluation
from regard.tasks.text_objective import N_LANES, first_tokens, identify
from regard.text.extended import ExtendedVocabulary
from regard.training.config import DEFAULT_CONTEXT, TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score


class BidirectionalObjective(Objective):
    """loss = Σ_t -log →P(w_{t+1} | w_1 ... w_t) - log ←P(w_{t-1} | w_t ... w_n), over windows of `prepared.train`.

    Each direction reads the whole text in its own order, with its state carried from window to window, as in the
    original program. A loss is a mean over both, so that e^loss is between the two perplexities.
    """

    select_by = "loss"
    unit = "word"
    memory_settings = "train.n_batch or train.n_context"
    has_one_shape = True
    cannot_replay = ""

    def __init__(self, model: Elmo, prepared: PreparedText, train: TrainConfig, seed: int) -> None:
        self.prepared, self.train, self.seed = prepared, train, seed
        model.learn_words(ExtendedVocabulary(prepared.tokenizer))
        order = "stream" if train.order == "auto" else train.order
        settings: dict[str, Any] = {
            "n_batch": train.n_batch,
            "n_context": train.n_context or DEFAULT_CONTEXT,
            "seed": seed,
            "order": order,
            "varies_context": train.varies_context,
        }
        self.batches = tuple(Batches(s, **settings) for s in (prepared.train, read_back(prepared.train)))
        self.per_epoch = self.batches[0].per_epoch
        self.carries_state = order == "stream"
        n_context = self.batches[0].n_context
        self.flops_per_token = model.flops_per_token(n_context)
        self.bytes_per_token: float | None = None  # unknown words cost what <unk> does: bits per byte were too good
        self.n_rows, self.n_target, self.n_classes = train.n_batch, 2 * n_context, model.n_vocab

    def identity(self) -> dict[str, Any]:
        return identify(self.prepared, self.batches[0], self.train, self.seed)

    def read_row(self, model: Elmo) -> Any:
        ids = torch.zeros(1, self.n_target // 2, dtype=torch.int64, device=model.device)
        return read_both(model, ids, ids, None)[0]

    def output_weight(self, model: Elmo) -> Tensor:
        return model.output_weight

    def at(self, index: int) -> HostBatch:
        parts = [batches.at(index) for batches in self.batches]
        arrays = [array for part in parts for array in (part.inputs, part.targets)] + [parts[0].mask]
        tensors = tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)
        return HostBatch(tensors, 2 * int(parts[0].mask.sum()), parts[0].is_fresh)

    def rate_factor(self, index: int) -> float:
        return self.batches[0].rate_factor(index)

    def body(self, model: Elmo) -> Callable[..., Any]:
        return lambda *inputs: read_both(model, *inputs)

    def loss(self, model: Elmo, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        ahead, after_ahead, back, after_back, mask = tensors
        h, after = body(ahead, back, before)
        nats = sum(model.goal_of(each, y, mask) for each, y in zip(h, (after_ahead, after_back), strict=True))
        assert isinstance(nats, Tensor)
        return PartLoss(nats, nats, after)

    def evaluate(self, model: Elmo) -> Score | None:
        if not len(self.prepared.valid):
            return None
        found = evaluate_both_ways(
            BothWays(model, N_LANES), first_tokens(self.prepared.valid, self.train.max_eval_tokens)
        )
        more = {f"perplexity_{name}": finite_perplexity(each.nats_per_token) for name, each in found.parts()}
        return Score(found.nats_per_token, None, criterion=found.nats_per_token, more=more)


def read_both(model: Elmo, ahead: Tensor, back: Tensor, before: Any) -> tuple[Tensor, Any]:
    """h of each direction's last layer, (2, B, T, D), and the states after; `before` is those of the window before."""
    keeps = model.draw_keeps(torch.stack([ahead, back]))
    outputs, after = model.read(model.embed_both(ahead, back), state=before, keeps=keeps)
    return outputs[-1], after


def read_back(stream: Stream) -> Stream:
    """The stream from its end to its beginning; nothing is copied."""
    shards = tuple(shard[::-1] for shard in reversed(stream.shards))
    return Stream(shards, stream.n_bytes, stream.n_words, stream.n_documents, stream.sample)


def evaluate_both_ways(model: BothWays, stream: Stream) -> TwoWayEvaluation:
    """What the words of a text cost, read ahead and read back."""
    ids = stream[0 : len(stream)]
    sizes: dict[str, Any] = {"n_tokens": len(stream), "n_bytes": stream.n_bytes, "n_words": max(stream.n_words, 1)}
    ahead, back = (
        Evaluation(nats=float(model.nats_one_way(ids, direction).sum()), **sizes) for direction in DIRECTIONS
    )
    n_unknown = int(np.count_nonzero((ids == UNK) | (ids >= model.elmo.n_vocab)))
    return TwoWayEvaluation(ahead, back, n_unknown)
