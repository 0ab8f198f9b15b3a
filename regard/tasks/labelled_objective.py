"""Learning from labelled texts: batches, the loss, and the score on examples that were held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.labelled import Example
from regard.data.labelled_batches import LabelledBatches, TextBatch, pad_windows
from regard.data.labelled_windows import Windows
from regard.decode.lines import batches_by_tokens
from regard.kernels.device import sdpa_backend_for_any_shape
from regard.models.heads import Goal
from regard.models.reader import Reader
from regard.training.config import TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score

MAX_TOKENS = 8192
"""Tokens of a batch that is answered."""

MakeTargets = Callable[[Sequence[Example], Sequence[Windows]], NDArray[Any]]
ScoreOutputs = Callable[[Sequence[Tensor], Sequence[Example], Sequence[Windows]], float]
"""A score in per cent of what a model gave for some examples, each without padding."""


class LabelledObjective(Objective):
    """loss = Σ of what the head makes small over all examples, words or questions."""

    memory_settings = "train.n_batch"
    carries_state = False
    has_one_shape = False
    cannot_replay = "batches of labelled texts come in many shapes"
    bytes_per_token: float | None = None

    def __init__(
        self,
        model: Reader,
        train: Sequence[Example],
        valid: Sequence[Example],
        frame: Callable[[Example], Windows],
        make_targets: MakeTargets,
        config: TrainConfig,
        seed: int,
        *,
        fingerprint: str,
        goal: Goal,
        has_segments: bool,
        n_classes: int,
        select_by: str,
        score: ScoreOutputs,
    ) -> None:
        self.examples, self.valid, self.make_targets, self.train, self.seed = train, valid, make_targets, config, seed
        self.windows, self.valid_windows = [frame(e) for e in train], [frame(e) for e in valid]
        self.fingerprint, self.goal, self.has_segments = fingerprint, goal, has_segments
        self.n_classes, self.select_by, self._score = n_classes, select_by, score
        self.count: Callable[[Tensor], int] = model.head.n_targets
        lengths = [len(each) for each in self.windows]
        self.batches = LabelledBatches(lengths, config.n_batch, seed)
        self.per_epoch, self.n_rows = self.batches.per_epoch, min(config.n_batch, len(train))
        self.n_read = max(1, round(float(np.mean(lengths))))
        some = slice(0, 1000)
        targets = torch.from_numpy(make_targets(train[some], self.windows[some]))
        self.n_target = max(1, round(model.head.n_targets(targets) / len(train[some])))
        self.flops_per_token = model.flops(self.n_read) // self.n_target

    def identity(self) -> dict[str, Any]:
        same = {"n_batch": self.train.n_batch, "n_accumulate": self.train.n_accumulate, "average": self.train.average}
        return {"data": self.fingerprint, "seed": self.seed, **same}

    def read_row(self, model: Reader) -> Any:
        limit = model.max_positions
        tokens = torch.zeros(1, 1, self.n_read if limit is None else min(self.n_read, limit), dtype=torch.int64)
        tokens = tokens.to(model.device)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        return model.states(tokens, mask, mask, torch.zeros_like(tokens[:, 0])).h

    def output_weight(self, model: Reader) -> Tensor:
        return model.head.out.weight  # type: ignore[no-any-return]

    def at(self, index: int) -> HostBatch:
        chosen = self.batches.indices(index).tolist()
        windows = [self.windows[i] for i in chosen]
        targets = torch.from_numpy(self.make_targets([self.examples[i] for i in chosen], windows))
        return HostBatch((*to_tensors(pad_windows(windows)), targets), max(1, self.count(targets)), is_fresh=True)

    def body(self, model: Reader) -> Callable[..., Any]:
        return model.forward

    def loss(self, model: Reader, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        tokens, mask, keep, places, segments, targets = tensors
        outputs = body(tokens, mask, keep, places, segments if self.has_segments else None)
        goal, nats = model.head.goal_of(outputs, targets, self.goal)
        return PartLoss(goal, nats, None)

    @torch.no_grad()
    def evaluate(self, model: Reader) -> Score | None:
        if not self.valid:
            return None
        outputs: dict[int, Tensor] = {}
        nats, n = 0.0, 0
        for chosen, found in ask(model, self.valid_windows, self.has_segments):
            targets = torch.from_numpy(
                self.make_targets([self.valid[i] for i in chosen], [self.valid_windows[i] for i in chosen])
            ).to(found.device)
            nats += float(model.head.goal_of(found, targets, Goal())[1])
            n += model.head.n_targets(targets)
            outputs |= zip(chosen, found.cpu(), strict=True)
        loss = nats / max(1, n)
        if self.select_by == "loss":
            return Score(loss, None, criterion=loss)
        score = self._score([outputs[i] for i in range(len(self.valid))], self.valid, self.valid_windows)
        return Score(loss, None, criterion=-score, more={self.select_by: score})


def to_tensors(batch: TextBatch) -> tuple[Tensor, ...]:
    """Tokens, mask, keep, places and segments."""
    arrays = batch.tokens, batch.mask, batch.keep, batch.places, batch.segments
    return tuple(torch.from_numpy(array) for array in arrays)


@torch.inference_mode()
@sdpa_backend_for_any_shape()
def read_windows(model: Reader, windows: Sequence[Windows], has_segments: bool) -> Tensor:
    """What the head gives for some texts, read together; the model is left in evaluation mode."""
    model.eval()
    tokens, mask, keep, places, segments = (part.to(model.device) for part in to_tensors(pad_windows(windows)))
    return model(tokens, mask, keep, places, segments if has_segments else None)  # type: ignore[no-any-return]


def ask(
    model: Reader, windows: Sequence[Windows], has_segments: bool, max_tokens: int = MAX_TOKENS
) -> Iterator[tuple[list[int], Tensor]]:
    """Numbers of texts of like lengths, and what the head gives for them, batch by batch."""
    for chosen in batches_by_tokens(list(range(len(windows))), [len(each) for each in windows], max_tokens):
        yield chosen, read_windows(model, [windows[i] for i in chosen], has_segments)
