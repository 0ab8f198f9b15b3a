"""Learning to predict the next token of a text: which windows are read, in which order, and the loss on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.data.batches import Batches
from regard.data.prepared_text import PreparedText
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.models.gradient_model import GradientModel
from regard.models.gradient_next_token import GradientNextToken
from regard.score.evaluate import Evaluation, evaluate
from regard.training.config import DEFAULT_CONTEXT, TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score

# Recurrent models read the validation text in so many pieces side by side, each with its state carried: 16 times fewer
# steps, and only the first tokens of each piece lack a past.
N_LANES = 16


class TextObjective(Objective):
    """loss = Σ -log P(target | the inputs up to it), and the model's own penalty, over windows of `prepared.train`.

    Weights are selected by the nats a token of `prepared.valid`.
    """

    select_by = "loss"
    memory_settings = "train.n_batch or train.n_context"
    has_one_shape = True
    cannot_replay = ""

    def __init__(self, model: GradientModel, prepared: PreparedText, train: TrainConfig, seed: int) -> None:
        self.prepared, self.train, self.seed = prepared, train, seed
        self.batches = build_batches(model, prepared.train, train, seed)
        self.per_epoch = self.batches.per_epoch
        self.carries_state = self.batches.order == "stream"
        self.flops_per_token = model.flops_per_token(self.batches.n_context)
        self.bytes_per_token: float | None = prepared.train.bytes_per_token
        self.n_rows, self.n_target, self.n_classes = train.n_batch, self.batches.n_context, model.vocab_size

    def identity(self) -> dict[str, Any]:
        return identify(self.prepared, self.batches, self.train, self.seed)

    def read_row(self, model: GradientModel) -> Any:
        ids = torch.zeros(1, self.n_target, dtype=torch.int64, device=model.embedding.device)
        return model.drop_output(model.hidden(ids)[0])  # type: ignore[arg-type]

    def output_weight(self, model: GradientModel) -> Tensor:
        return model.output_weight

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
        self, model: GradientModel, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any
    ) -> PartLoss:
        inputs, targets, mask = tensors
        h, after = body(inputs, before)
        return PartLoss(*model.goal_of(h, targets, mask), after)

    def evaluate(self, model: GradientModel) -> Score | None:
        valid = self.prepared.valid
        if not len(valid):
            return None
        found = evaluate_slice(model, valid, self.train.max_eval_tokens, self.prepared.tokenizer.eos)
        return Score(found.nats_per_token, found.bits_per_byte, criterion=found.nats_per_token)


def identify(prepared: PreparedText, batches: Batches, train: TrainConfig, seed: int) -> dict[str, Any]:
    """What must be the same when training on a text is resumed."""
    return {
        "data": prepared.fingerprint,
        "seed": seed,
        "n_batch": batches.n_batch,
        "n_context": batches.n_context,
        "n_accumulate": train.n_accumulate,
        "order": batches.order + (" of varying length" if train.varies_context else ""),
        "average": train.average,
    }


def build_batches(model: GradientModel, stream: Stream, train: TrainConfig, seed: int) -> Batches:
    """The batches that `model` is trained on: update i reads batch i."""
    n_context, order = choose_context(model, train), choose_order(model, train)
    if train.varies_context and model.mixer.max_context is not None:
        raise RegardError(
            f"train.varies_context reads windows longer than n_context now and then, but the model sees at most "
            f"{model.mixer.max_context} tokens. Set it to false, or train a model without such a limit."
        )
    return Batches(
        stream,
        n_batch=train.n_batch,
        n_context=n_context,
        seed=seed,
        order=order,
        varies_context=train.varies_context,
    )


def choose_order(model: GradientModel, train: TrainConfig) -> str:
    """`train.order` with auto resolved: a model that carries its state reads the text in order."""
    if train.order != "auto":
        return train.order
    return "stream" if model.mixer.carries_state else "shuffle"


def choose_context(model: GradientModel, train: TrainConfig) -> int:
    """`train.n_context` with null resolved, checked against what the model can see."""
    limit = model.mixer.max_context
    if train.n_context is None:
        return limit or DEFAULT_CONTEXT
    if limit is not None and train.n_context > limit:
        raise RegardError(
            f"train.n_context is {train.n_context}, but the model sees at most {limit} tokens. Lower it, or raise "
            f"model.max_context to {train.n_context}."
        )
    return train.n_context


def evaluate_slice(model: GradientModel, stream: Stream, max_tokens: int | None, eos: int) -> Evaluation:
    """The score of the first `max_tokens` tokens (None: all). The model is left in evaluation mode."""
    return evaluate(GradientNextToken(model, n_lanes=N_LANES, eos=eos), first_tokens(stream, max_tokens))


def first_tokens(stream: Stream, max_tokens: int | None) -> Stream:
    """The beginning of a stream, with its share of the bytes and words: these are known for whole streams only."""
    if max_tokens is None or max_tokens >= len(stream):
        return stream
    share = max_tokens / len(stream)
    n_bytes, n_words = max(1, round(stream.n_bytes * share)), max(1, round(stream.n_words * share))
    return Stream.of(stream[0:max_tokens], n_bytes=n_bytes, n_words=n_words)
