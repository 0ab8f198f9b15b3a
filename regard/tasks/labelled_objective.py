"""Learning from labelled texts: batches, the loss, and the score on examples that were held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.labelled import Example
from regard.data.labelled_batches import NOWHERE, LabelledBatches, TextBatch, pad_windows
from regard.data.labelled_windows import Windows
from regard.data.shapes import MAX_SHAPES_SEEN, FewShapes
from regard.decode.lines import batches_by_tokens
from regard.kernels.device import sdpa_backend_for_any_shape
from regard.models.heads import IGNORED, Goal
from regard.models.reader import Reader
from regard.training.config import TrainConfig
from regard.training.objective import HostBatch, Objective, PartLoss, Score, pad_to

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
        self.unit = model.head.unit
        lengths = [len(each) for each in self.windows]
        self.batches = LabelledBatches(lengths, config.n_batch, seed)
        self.per_epoch, self.n_rows = self.batches.per_epoch, min(config.n_batch, len(train))
        self.max_positions, self.answers_each_place = model.max_positions, model.head.answers_each_place
        has_windows = any(len(each.tokens) > 1 for each in self.windows)
        self.cannot_replay = "how many windows the texts of a batch have is asked for" if has_windows else ""
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

    def round_shape(self, batch: HostBatch) -> HostBatch:
        tokens, mask, keep, places, segments, targets = batch.tensors
        n_tokens, n_places = self._shapes.fit((tokens.shape[2], places.shape[1]))
        n_tokens = min(n_tokens, self.max_positions or n_tokens)
        tokens, mask, keep, segments = (pad_to(t, *t.shape[:2], n_tokens) for t in (tokens, mask, keep, segments))
        places = pad_to(places, len(places), n_places, value=NOWHERE)
        if self.answers_each_place:
            targets = pad_to(targets, len(targets), n_places, value=IGNORED)
        return batch._replace(tensors=(tokens, mask, keep, places, segments, targets))

    @cached_property
    def _shapes(self) -> FewShapes:
        """How many tokens and places the first batches have: the same whenever a run is taken up again."""
        seen = []
        for index in range(min(2 * self.per_epoch, MAX_SHAPES_SEEN)):
            chosen = [self.windows[i] for i in self.batches.indices(index).tolist()]
            seen.append((max(len(each.tokens[0]) for each in chosen), max(len(each.places) for each in chosen)))
        return FewShapes(seen, lambda shape: shape.sum(axis=-1))

    def body(self, model: Reader) -> Callable[..., Any]:
        return model.forward

    def loss(self, model: Reader, body: Callable[..., Any], tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        tokens, mask, keep, places, segments, targets = tensors
        outputs = body(tokens, mask, keep, places, segments if self.has_segments else None)
        if self.goal.weights is not None:  # moved once, and then there
            self.goal = replace(self.goal, weights=self.goal.weights.to(outputs.device))
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
