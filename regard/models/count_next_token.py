"""An n-gram model as a NextToken: its state is the last n-1 tokens of every text."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.count.ngram import NgramModel
from regard.models.next_token import greedy_steps

Contexts = tuple[tuple[int, ...], ...]
"""For each text, what the next token is predicted from: shorter than order - 1 only where the text is."""


class CountNextToken:
    """P(w | the last n-1 tokens), token by token."""

    max_context: int | None = None

    def __init__(self, model: NgramModel) -> None:
        self.model = model
        self.vocab_size = model.vocab_size

    def nats(self, ids: NDArray[np.integer[Any]], stride: int | None = None) -> NDArray[np.float64]:
        return self.model.nats(ids)

    def nats_of_windows(self, windows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """The first token of a piece counts as the first of a sentence: nothing else is known about its past."""
        nats = [self.model.nats(window)[1:] for window in windows]
        return np.stack(nats) if nats else np.zeros((0, windows.shape[1] - 1))

    def start(self, prompts: Int[Tensor, "B T"], capacity: int | None = None) -> tuple[Float[Tensor, "B V"], Contexts]:
        return self._log_probs(tuple(self._recent(tuple(prompt)) for prompt in prompts.tolist()))

    def step(self, tokens: Int[Tensor, " B"], state: Contexts) -> tuple[Float[Tensor, "B V"], Contexts]:
        pairs = zip(state, tokens.tolist(), strict=True)
        return self._log_probs(tuple(self._recent((*context, token)) for context, token in pairs))

    def greedy(self, log_probs: Float[Tensor, "B V"], state: Contexts, n_steps: int) -> Iterator[list[int]]:
        return greedy_steps(self, log_probs, state, n_steps)

    def reorder(self, state: Contexts, rows: Int[Tensor, " R"]) -> Contexts:
        return tuple(state[row] for row in rows.tolist())

    def _recent(self, context: tuple[int, ...]) -> tuple[int, ...]:
        return context[max(0, len(context) - self.model.order + 1) :]

    def _log_probs(self, contexts: Contexts) -> tuple[Float[Tensor, "B V"], Contexts]:
        distributions = [self.model.next_log_probs(context) for context in contexts]
        return torch.from_numpy(np.stack(distributions)), contexts
