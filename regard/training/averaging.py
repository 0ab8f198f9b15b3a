"""An exponential moving average of the weights (Polyak & Juditsky 1992): evaluated and kept in place of the raw ones.

    a' = d a + (1 - d) w,      d = min(average_decay, (1 + t) / (10 + t)),      t = updates so far

The second term of d lets the average forget the random start within the first steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average of a model's parameters, by name."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = dict(model.named_parameters())
        self.average = {name: p.detach().clone() for name, p in self._weights.items()}

    @torch.no_grad()
    def update(self, n_updates: int) -> None:
        """Take in the weights as they are after `n_updates` updates."""
        decay = min(self.decay, (1 + n_updates) / (10 + n_updates))
        torch._foreach_lerp_(list(self.average.values()), [p.detach() for p in self._weights.values()], 1 - decay)

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        for name, value in self.average.items():
            value.copy_(tensors[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model computes with the average inside this block, and has its own weights back after it."""
        raw = {name: p.detach().clone() for name, p in self._weights.items()}
        self._put(self.average)
        try:
            yield
        finally:
            self._put(raw)

    @torch.no_grad()
    def _put(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self._weights.items():
            parameter.copy_(tensors[name])
