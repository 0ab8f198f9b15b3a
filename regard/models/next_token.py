"""What scoring, decoding and comparing ask of a model: the log-probabilities of the next token, given the past.

Count models and gradient models meet here. Every text begins with an unseen `<eos>`, the mark that ends every text:
the first token is predicted from it.

A model that sees at most M tokens keeps the past by one rule, with a cache or without: it sees everything until M
tokens are there; then it drops the oldest `stride`, half of M, and fills up again. So token n+1 is predicted from the
last

    c(n) = n  where n ≤ M,   M - stride + 1 + (n - M - 1) mod stride  beyond.

Scoring a text in windows that overlap by M - stride gives the same numbers as reading it token by token.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.count.ngram import NgramModel
from regard.errors import RegardError

EOS = 0


@runtime_checkable
class NextToken(Protocol):
    """A model of P(next token | past), for B texts at a time."""

    vocab_size: int
    max_context: int | None

    def nats(self, ids: NDArray[np.integer[Any]], stride: int | None = None) -> NDArray[np.float64]:
        """-log P of every token of one text, given the tokens before it.

        `stride` is how far a fixed-context model's window moves at a time: half the window if None; a smaller one
        gives more context and takes longer. Other models have no window.
        """

    def nats_of_windows(self, windows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """For pieces (W, L+1) cut out of a text: -log P of each token but the first, given its piece alone (W, L)."""

    def nats_of_texts(self, texts: Sequence[NDArray[np.integer[Any]]]) -> list[NDArray[np.float64]]:
        """`nats` of each of several texts, read side by side."""

    def start(self, prompts: Int[Tensor, "B T"], capacity: int | None = None) -> tuple[Float[Tensor, "B V"], Any]:
        """Log-probabilities of the token after each prompt (T may be 0), and the state to go on from.

        `capacity` is the most tokens there will be, prompt included, where it is known: caches are sized by it.
        """

    def step(self, tokens: Int[Tensor, " B"], state: Any) -> tuple[Float[Tensor, "B V"], Any]:
        """Log-probabilities after one more token in each text, and the state then. The one that is given is used up."""

    def greedy(self, log_probs: Float[Tensor, "B V"], state: Any, n_steps: int) -> Iterator[list[int]]:
        """The most probable token of each text, n times: what `step` would give, read with as little waiting as can be.

        Takes what `start` or `step` returned. The state is used up.
        """

    def reorder(self, state: Any, rows: Int[Tensor, " R"]) -> Any:
        """The state whose texts are `rows` of this one's (a row may come twice)."""


def context_length(n: int, limit: int, stride: int) -> int:
    """How many of the last tokens are seen when there are n: c(n) above.

    >>> [context_length(n, limit=4, stride=2) for n in range(1, 9)]
    [1, 2, 3, 4, 3, 4, 3, 4]
    """
    return n if n <= limit else limit - stride + 1 + (n - limit - 1) % stride


BAD_WEIGHTS = (
    "its weights are damaged, or were never good. Take its model.safetensors from a copy, or train it again, at a "
    "lower optimizer.lr if the training went wrong."
)
"""Why a model computes what is no number, and what to do."""


def greedy_steps(model: NextToken, log_probs: Float[Tensor, "B V"], state: Any, n_steps: int) -> Iterator[list[int]]:
    """`greedy`, step by step."""
    for i in range(n_steps):
        best, tokens = log_probs.max(dim=-1)  # NaN wins over every number
        check_numbers(best.tolist())
        yield tokens.tolist()
        if i + 1 < n_steps:
            log_probs, state = model.step(tokens, state)


def check_numbers(values: Iterable[float]) -> None:
    """Refuse to go on from NaN."""
    if any(map(math.isnan, values)):
        raise RegardError(f"The model's predictions are not numbers (NaN): {BAD_WEIGHTS}")


Contexts = tuple[tuple[int, ...], ...]
"""For each text, what the next token is predicted from: shorter than order - 1 only where the text is."""


class CountNextToken:
    """An n-gram model as a NextToken: P(w | the last n-1 tokens), token by token."""

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

    def nats_of_texts(self, texts: Sequence[NDArray[np.integer[Any]]]) -> list[NDArray[np.float64]]:
        return [self.model.nats(ids) for ids in texts]

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
