"""Averages of the weights: evaluated and kept in place of the weights that are trained.

ema, an exponential moving average (Polyak & Juditsky 1992):

    a' = d a + (1 - d) w,      d = min(average_decay, (1 + t) / (10 + t)),      t = updates so far

The second term of d lets the average forget the random start within the first steps.

nt-asgd, averaged SGD with a non-monotonic trigger (Merity et al. 2018): the plain weights until evaluation k, where

    v_k > min(v_1, ..., v_{k-1-n}),      v = score on the validation text,   n = average_patience

that is, until a score is worse than the best of those more than n evaluations ago; from then on the mean of the weights
of that moment and after every update since. (The paper's pseudo-code takes the minimum over the last n scores, its
authors' program over all but these; this is the program's rule.)

last, the mean of the weights after the last n = average_last of every eval_every-th update, where evaluations are, this
one included (Vaswani et al. 2017 average their last checkpoints). A run that ends between two is not one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.training.config import TrainConfig

N_AVERAGED = "n_averaged"  # beside the weights in a checkpoint


def build_average(model: nn.Module, config: TrainConfig) -> Average | None:
    """Make the average that `train.average` asks for."""
    if config.average == "ema":
        return WeightAverage(model, config.average_decay)
    if config.average == "last":
        return LastAverage(model, config.average_last, config.eval_every)
    return TriggeredAverage(model, config.average_patience) if config.average == "nt-asgd" else None


class WeightAverage:
    """The exponential moving average of a model's parameters, by name."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = _find_learned(model)
        self.average = _copy(self.weights)

    def observe(self, scores: Sequence[float]) -> None:
        """Scores do not matter: it runs from the first update on."""

    @torch.no_grad()
    def update(self, n_updates: int) -> None:
        """Take in the weights as they are after `n_updates` updates."""
        decay = min(self.decay, (1 + n_updates) / (10 + n_updates))
        torch._foreach_lerp_(list(self.average.values()), [p.detach() for p in self.weights.values()], 1 - decay)

    def tensors(self) -> dict[str, Tensor]:
        """Everything the next update of the average depends on."""
        return self.average

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        for name, value in self.average.items():
            value.copy_(tensors[name])


class TriggeredAverage:
    """The mean of a model's parameters since the scores stopped getting better; `average` is empty until then."""

    def __init__(self, model: nn.Module, patience: int) -> None:
        self.patience = patience
        self.weights = _find_learned(model)
        self.average: dict[str, Tensor] = {}
        self.n_averaged = 0

    def observe(self, scores: Sequence[float]) -> None:
        """Begin, if the newest of all scores so far, the last one, says so and nothing has begun yet."""
        if not self.average and is_triggered(scores, self.patience):
            self.average, self.n_averaged = _copy(self.weights), 1

    @torch.no_grad()
    def update(self, n_updates: int) -> None:
        """Take in the weights as they are now: a' = a + (w - a) / n, where w is the n-th of the mean."""
        if self.average:
            self.n_averaged += 1
            weights = [p.detach() for p in self.weights.values()]
            torch._foreach_lerp_(list(self.average.values()), weights, 1 / self.n_averaged)

    def tensors(self) -> dict[str, Tensor]:
        """Everything the next update of the average depends on."""
        return {**self.average, N_AVERAGED: torch.tensor(self.n_averaged)} if self.average else {}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.average, self.n_averaged = {}, 0
        if tensors:
            self.average = _copy(self.weights)
            self.n_averaged = int(tensors[N_AVERAGED])
            for name, value in self.average.items():
                value.copy_(tensors[name])


class LastAverage:
    """The mean of a model's parameters after the last `n` of every `every`-th update; empty until the first."""

    def __init__(self, model: nn.Module, n: int, every: int) -> None:
        self.n, self.every = n, every
        self.weights = _find_learned(model)
        self._kept: list[dict[str, Tensor]] = []  # the oldest first
        self.average: dict[str, Tensor] = {}

    def observe(self, scores: Sequence[float]) -> None:
        """Scores do not matter."""

    def update(self, n_updates: int) -> None:
        """Keep the weights as they are now, if their turn has come."""
        if n_updates % self.every == 0:
            self._kept = [*self._kept[1 - self.n :], _copy(self.weights)] if self.n > 1 else [_copy(self.weights)]
            self._take_mean()

    def _take_mean(self) -> None:
        names = self.weights if self._kept else ()
        self.average = {name: torch.stack([kept[name] for kept in self._kept]).mean(dim=0) for name in names}

    def tensors(self) -> dict[str, Tensor]:
        """Everything the next update of the average depends on."""
        return {f"{i}/{name}": value for i, kept in enumerate(self._kept) for name, value in kept.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        numbers = sorted({int(key.partition("/")[0]) for key in tensors})
        like = self.weights
        self._kept = [{name: tensors[f"{i}/{name}"].to(p.device).clone() for name, p in like.items()} for i in numbers]
        self._take_mean()


Average = WeightAverage | TriggeredAverage | LastAverage


def is_triggered(scores: Sequence[float], patience: int) -> bool:
    """Whether the last score is worse (higher) than the best of those more than `patience` evaluations before it.

    >>> is_triggered([5.0, 3.0, 4.0], patience=1), is_triggered([5.0, 3.0, 4.0, 3.5], patience=1)
    (False, True)
    """
    older = scores[: max(0, len(scores) - 1 - patience)]
    return len(older) > 0 and scores[-1] > min(older)


def _find_learned(model: nn.Module) -> dict[str, nn.Parameter]:
    """What is frozen is its own average, and a mean of it could be off by a rounding."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def _copy(weights: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in weights.items()}


@contextmanager
def use_average(average: Average | None) -> Iterator[None]:
    """Inside this block the model computes with the average, where there is one already; after it, as before."""
    weights, others = ({}, {}) if average is None else (average.weights, average.average)
    raw = {name: weights[name].detach().clone() for name in others}
    _put(weights, others)
    try:
        yield
    finally:
        _put(weights, raw)


@torch.no_grad()
def _put(weights: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> None:
    for name, value in values.items():
        weights[name].copy_(value)
