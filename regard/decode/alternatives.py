"""What else a model could have written: the most probable tokens of every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.models.next_token import NextToken, greedy_steps


@dataclass(frozen=True)
class Step:
    """The most probable tokens of one text at one step, the best first, with their log-probabilities."""

    tokens: list[int]
    log_probs: list[float]


class Watched:
    """A NextToken that remembers the k most probable tokens of its last step, and every token's log-probability.

    They are the model's own: neither the temperature nor a filter changes them.
    """

    def __init__(self, model: NextToken, k: int) -> None:
        self.model, self.k = model, k
        self.vocab_size, self.max_context = model.vocab_size, model.max_context
        self._last: Tensor | None = None

    def read(self, row: int, token: int) -> tuple[float, Step]:
        """The log-probability of a token in the last step, and the most probable tokens there."""
        assert self._last is not None, "a step was made"
        log_probs = self._last[row].double()
        values, tokens = log_probs.topk(min(self.k, len(log_probs)))
        return float(log_probs[token]), Step(tokens.tolist(), values.tolist())

    def start(self, prompts: Int[Tensor, "B T"], capacity: int | None = None) -> tuple[Float[Tensor, "B V"], Any]:
        self._last, state = self.model.start(prompts, capacity)
        return self._last, state

    def step(self, tokens: Int[Tensor, " B"], state: Any) -> tuple[Float[Tensor, "B V"], Any]:
        self._last, state = self.model.step(tokens, state)
        return self._last, state

    def greedy(self, log_probs: Float[Tensor, "B V"], state: Any, n_steps: int) -> Iterator[list[int]]:
        return greedy_steps(self, log_probs, state, n_steps)

    def reorder(self, state: Any, rows: Int[Tensor, " R"]) -> Any:
        return self.model.reorder(state, rows)

    def nats(self, ids: NDArray[np.integer[Any]], stride: int | None = None) -> NDArray[np.float64]:
        return self.model.nats(ids, stride)

    def nats_of_windows(self, windows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        return self.model.nats_of_windows(windows)

    def nats_of_texts(self, texts: Sequence[NDArray[np.integer[Any]]]) -> list[NDArray[np.float64]]:
        return self.model.nats_of_texts(texts)
