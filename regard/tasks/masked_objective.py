"""Learning to fill masked places, and to tell whether a text follows another: the loss and the score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.data.masked_batches import MaskedBatch, MaskedBatches
from regard.data.masked_config import MaskingConfig
from regard.data.prepared_text import PreparedText
from regard.data.stream import Stream
from regard.kernels.device import at_least_float32
from regard.models.bert import Bert
from regard.score.evaluate import finite_perplexity
from regard.score.measured import Figure, Measured
from regard.text.tokenizer import Tokenizer
from regard.training.config import TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score

EVALUATION_SEED = 0x5EED  # the same places are masked whenever and by whatever run a text is scored
MIN_EVALUATED = 8  # tokens; a text that is shorter is not scored


@dataclass(frozen=True, kw_only=True)
class MaskedEvaluation:
    """How well masked places of a text are filled: nats and hits over all of them; and of pairs, how many are told."""

    nats: float
    n_right: int
    n_masked: int
    n_tokens: int
    n_pairs_right: int = 0
    n_pairs: int = 0
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def nats_per_token(self) -> float:
        """Of the masked tokens alone."""
        return self.nats / self.n_masked

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n_masked

    @property
    def next_accuracy(self) -> float | None:
        return self.n_pairs_right / self.n_pairs if self.n_pairs else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "nats_per_masked_token": self.nats_per_token,
            "perplexity_of_masked": finite_perplexity(self.nats_per_token),
            "masked_accuracy": self.accuracy,
            "next_sentence_accuracy": self.next_accuracy,
            "n_masked": self.n_masked,
            "n_tokens": self.n_tokens,
            "n_pairs": self.n_pairs,
        }

    def measure(self) -> Measured:
        figures = [
            Figure("loss, nats a masked token", self.nats_per_token, 4),
            Figure("perplexity of masked tokens", finite_perplexity(self.nats_per_token)),
            Figure("masked tokens right, %", 100 * self.accuracy),
        ]
        if self.next_accuracy is not None:
            figures.append(Figure("next sentences told, %", 100 * self.next_accuracy))
        counts = {"masked tokens": self.n_masked, "tokens": self.n_tokens}
        counts |= {"pairs": self.n_pairs} if self.n_pairs else {}
        return Measured(tuple(figures), "loss, nats a masked token", False, counts, notes=self.notes)


class MaskedObjective(Objective):
    """loss = mean over the masked tokens of -log P(token)  +  mean over the pairs of -log P(follows or not)

    (Devlin et al. 2019); the second where the model has a next-sentence head. The head reads the masked places alone, a
    seventh of all. Weights are selected by the nats a masked token of the validation text.
    """

    select_by = "loss"
    unit = "masked token"
    memory_settings = "train.n_batch or train.n_context"
    has_one_shape = True
    cannot_replay = ""
    carries_state = False
    bytes_per_token: float | None = None

    def __init__(
        self, model: Bert, prepared: PreparedText, masking: MaskingConfig, train: TrainConfig, seed: int
    ) -> None:
        assert train.n_context is not None, "the task fills it in"
        self.prepared, self.masking, self.train, self.seed = prepared, masking, train, seed
        self.batches = build_batches(
            model, prepared.train, prepared.tokenizer, masking, train.n_batch, train.n_context, seed
        )
        self.per_epoch = self.batches.per_epoch
        self.n_rows, self.n_target, self.n_classes = train.n_batch, self.batches.n_masked, model.vocab_size
        self.flops_per_token = model.flops_per_row(train.n_context, self.n_target) // self.n_target

    def identity(self) -> dict[str, Any]:
        return {
            "data": self.prepared.fingerprint,
            "seed": self.seed,
            "n_batch": self.train.n_batch,
            "n_context": self.train.n_context,
            "n_accumulate": self.train.n_accumulate,
            "masking": self.masking.to_dict(),
            "average": self.train.average,
        }

    def read_row(self, model: Bert) -> Any:
        ids = torch.zeros(1, self.batches.n_context, dtype=torch.int64, device=model.embedding.device)
        return model.hidden(ids, None, ids)

    def output_weight(self, model: Bert) -> Tensor:
        return model.embedding

    def at(self, index: int) -> HostBatch:
        batch = self.batches.at(index)
        return HostBatch(as_tensors(batch), int(batch.is_there.sum()), is_fresh=True)

    def body(self, model: Bert) -> Callable[..., Any]:
        return model.hidden

    def loss(self, model: Bert, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        tokens, segments, places, targets, is_there, is_next = tensors
        h = body(tokens, None, segments)  # (B, T, D)
        nats = model.nats_of(take_places(h, places), targets.flatten(), is_there.flatten())
        if model.next_head is None:
            return PartLoss(nats, nats, None)
        logits = at_least_float32(model.next_head(model.pool(h)))  # (B, 2)
        # The sum over pairs is to be divided by their number, and all is divided by that of the masked tokens.
        follows = functional.cross_entropy(logits, 1 - is_next, reduction="sum") * self.n_target
        return PartLoss(nats + follows, nats, None)

    def evaluate(self, model: Bert) -> Score | None:
        found = evaluate_masked(
            model, self.prepared.valid, self.prepared.tokenizer, self.masking, self.batches.n_context,
            self.train.max_eval_tokens,
        )  # fmt: skip
        if found is None:
            return None
        more = {"masked_accuracy": found.accuracy}
        if found.next_accuracy is not None:
            more["next_sentence_accuracy"] = found.next_accuracy
        return Score(found.nats_per_token, None, found.nats_per_token, more)


def build_batches(
    model: Bert, stream: Stream, tokenizer: Tokenizer, masking: MaskingConfig, n_batch: int, n_context: int, seed: int
) -> MaskedBatches:
    return MaskedBatches(
        stream,
        tokenizer,
        masking,
        n_batch=n_batch,
        n_context=n_context,
        has_pairs=model.next_head is not None,
        seed=seed,
    )


def as_tensors(batch: MaskedBatch) -> tuple[Tensor, ...]:
    arrays = (batch.tokens, batch.segments, batch.places, batch.targets, batch.is_there, batch.is_next)
    return tuple(torch.from_numpy(array) for array in arrays)


def take_places(h: Float[Tensor, "B T D"], places: Int[Tensor, "B K"]) -> Float[Tensor, "M D"]:
    """The states at the places of each row, one after the other."""
    return h.gather(1, places[..., None].expand(-1, -1, h.shape[-1])).flatten(0, 1)


@torch.no_grad()
def evaluate_masked(
    model: Bert,
    stream: Stream,
    tokenizer: Tokenizer,
    masking: MaskingConfig,
    n_context: int,
    max_tokens: int | None,
    n_batch: int = 32,
) -> MaskedEvaluation | None:
    """Score about the first `max_tokens` tokens of a text (None: all), each read once; None: it is too short.

    The same places are masked every time. The model is left in evaluation mode.
    """
    model.eval()
    n_read = len(stream) if max_tokens is None else min(max_tokens, len(stream))
    if n_read < MIN_EVALUATED:
        return None
    stream = Stream.of(stream[0:n_read])
    n_marks = n_context - build_room(model, tokenizer, n_context)
    n_context = min(n_context, len(stream) - 1 + n_marks)
    n_windows = max(1, len(stream) // (n_context - n_marks))
    n_batch = min(n_batch, n_windows)
    batches = build_batches(model, stream, tokenizer, masking, n_batch, n_context, EVALUATION_SEED)
    nats, n_right, n_masked, n_pairs_right, n_pairs = 0.0, 0, 0, 0, 0
    for index in range(batches.per_epoch):
        tokens, segments, places, targets, is_there, is_next = (
            tensor.to(model.embedding.device) for tensor in as_tensors(batches.at(index))
        )
        h = model.hidden(tokens, None, segments)
        each, best = score_places(model, take_places(h, places), targets.flatten())
        there = is_there.flatten()
        nats += math.fsum(each[there].tolist())
        n_right += int((best == targets.flatten())[there].sum())
        n_masked += int(there.sum())
        if model.next_head is not None:
            n_pairs_right += int((model.next_head(model.pool(h)).argmax(dim=-1) == 1 - is_next).sum())
            n_pairs += len(is_next)
    return MaskedEvaluation(
        nats=nats, n_right=n_right, n_masked=n_masked, n_tokens=batches.per_epoch * n_batch * n_context,
        n_pairs_right=n_pairs_right, n_pairs=n_pairs,
    )  # fmt: skip


def build_room(model: Bert, tokenizer: Tokenizer, n_context: int) -> int:
    """How many tokens of text a row of `n_context` has between its marks."""
    assert tokenizer.marks is not None
    return n_context - tokenizer.marks.count_in_frame(is_pair=model.next_head is not None)


def score_places(
    model: Bert, states: Float[Tensor, "M D"], targets: Int[Tensor, " M"]
) -> tuple[Float[Tensor, " M"], Int[Tensor, " M"]]:
    """-log P of each target, and the most probable token at each place."""
    logits = at_least_float32(model.logits(states)[:, : model.vocab_size])
    return functional.cross_entropy(logits, targets, reduction="none").double(), logits.argmax(dim=-1)
