"""What may come next, for every decoder: guards against early ends and repetition, and a constraint."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.stepper import Constraint

IMPOSSIBLE = -(2.0**100)
"""The log-probability of what is taken only where nothing else is left; -inf is what is never taken.

A power of two: the same number in float32, float64 and bfloat16.
"""


class Rules:
    """Changes log-probabilities before a token is chosen.

    What a guard speaks against becomes IMPOSSIBLE, and what the constraint does not allow -inf. So the constraint is
    obeyed even where the model or a guard leaves none of the tokens that it allows.
    """

    def __init__(
        self,
        *,
        stop: int | None,
        min_length: int = 1,
        no_repeat_ngram: int | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        self.stop, self.min_length, self.no_repeat_ngram = stop, min_length, no_repeat_ngram
        self.constraint = constraint

    @property
    def reads_texts(self) -> bool:
        """Whether what may come next depends on what was written, beyond its length."""
        return self.no_repeat_ngram is not None or self.constraint is not None

    def start(self, row: int) -> Any:
        """The constraint's state before the first token of source `row`."""
        return None if self.constraint is None else self.constraint.start(row)

    def step(self, state: Any, token: int) -> Any:
        return None if self.constraint is None else self.constraint.step(state, token)

    def apply(
        self,
        log_probs: Float[Tensor, "R V"],
        texts: NDArray[np.int64],
        states: Sequence[Any],
        is_open: NDArray[np.bool_],
    ) -> Float[Tensor, "R V"]:
        """Change what may follow R texts of t tokens each (R, t); rows that are not open (R,) come out in any way."""
        length = texts.shape[1] + 1
        is_early = self.stop is not None and length < self.min_length
        n = self.no_repeat_ngram
        if is_early or (n is not None and length > n):
            log_probs = log_probs.clone()  # the model's own
            if is_early:
                log_probs[:, self.stop] = IMPOSSIBLE
            if n is not None:
                rows, tokens = find_repeats(texts, n)
                told = torch.from_numpy(np.stack([rows, tokens])).to(log_probs.device, non_blocking=True)
                log_probs[told[0], told[1]] = IMPOSSIBLE
        return log_probs if self.constraint is None else self._constrain(log_probs, states, is_open)

    def _constrain(self, log_probs: Tensor, states: Sequence[Any], is_open: NDArray[np.bool_]) -> Tensor:
        assert self.constraint is not None
        V = log_probs.shape[1]
        open_rows = is_open.nonzero()[0].tolist()
        allowed = torch.stack([self.constraint.allowed(states[row]) for row in open_rows]).cpu()
        assert allowed.shape[1] <= V, "the constraint has more tokens than the model"
        assert bool(allowed.any(dim=1).all()), "the constraint allows no token at all"
        is_out = torch.from_numpy(is_open)[:, None].repeat(1, V)  # of rows that are not open, nothing is
        is_out[open_rows, : allowed.shape[1]] = ~allowed
        return log_probs.clamp(min=IMPOSSIBLE).masked_fill(is_out.to(log_probs.device, non_blocking=True), -math.inf)


def find_repeats(texts: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the rows and tokens that would make the last n tokens of a row a repetition of n tokens before them.

    >>> [found.tolist() for found in find_repeats(np.array([[1, 2, 3, 1, 2], [1, 2, 3, 4, 5]]), 3)]
    [[0], [3]]
    """
    t = texts.shape[1]
    if t < n:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    before = np.lib.stride_tricks.sliding_window_view(texts, n, axis=1)  # (R, t - n + 1, n)
    is_same = (before[:, :, : n - 1] == texts[:, None, t - n + 1 :]).all(axis=2)
    rows, places = is_same.nonzero()
    return rows, before[rows, places, n - 1]
