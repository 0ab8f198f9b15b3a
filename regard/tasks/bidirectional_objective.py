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
        self.bytes_per_token: float | None = prepared.train.bytes_per_token
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
        return Score(found.nats_per_token, found.bits_per_byte, criterion=found.nats_per_token, more=more)


def read_both(
    model: Elmo, ahead: Tensor, back: Tensor, before: tuple[Any, Any] | None
) -> tuple[tuple[Tensor, Tensor], tuple[Any, Any]]:
    """h of each direction's last layer, and the states after; `before` is those after the window before."""
    rows = torch.cat([model.rows_of(ids, way) for way, ids in zip(DIRECTIONS, (ahead, back), strict=True)])
    found = [
        model.read(x, way, None if before is None else before[i])
        for i, (way, x) in enumerate(zip(DIRECTIONS, model.embed(rows).chunk(2), strict=True))
    ]
    (h, after), (h_back, after_back) = found
    return (h[-1], h_back[-1]), (after, after_back)


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
    return TwoWayEvaluation(ahead, back)
