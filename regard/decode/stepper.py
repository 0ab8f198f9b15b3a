"""What search and sampling ask of whatever they decode: a language model, a translator, several of them at once."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import RegardError


@runtime_checkable
class Stepper(Protocol):
    """Log-probabilities of the next token of R texts, and a state to go on from. Every NextToken is one.

    V may differ from step to step: where words are copied, a batch has as many more as its sources need.
    """

    def step(self, tokens: Int[Tensor, " R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """What follows one more token in each text. The state is used up."""

    def reorder(self, state: Any, rows: Int[Tensor, " R"]) -> Any:
        """The state whose texts are `rows` of this one's (a row may come twice, or not at all)."""


@runtime_checkable
class Constraint(Protocol):
    """Which tokens may come next. Its states belong to one text each and are never changed, only replaced."""

    def start(self, row: int) -> Any:
        """The state before the first token; `row` is the number of the source in the batch."""

    def allowed(self, state: Any) -> Bool[Tensor, " V"]:
        """True for what may come next: one token at least. Ids from V on may not."""

    def step(self, state: Any, token: int) -> Any:
        """The state after one more token, an allowed one. Not asked after the token that ends a text."""


class Ensemble:
    """n steppers as one: P(w) = 1/n Σ_i P_i(w), a mean of probabilities and not of their logarithms.

    Its state is the tuple of theirs. All must share one vocabulary, since they read each other's tokens.
    """

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        if not steppers:
            raise RegardError("An ensemble needs one model at least, and none was given.")
        self.steppers = tuple(steppers)

    def start(self, begun: Sequence[tuple[Float[Tensor, "R _"], Any]]) -> tuple[Float[Tensor, "R V"], tuple[Any, ...]]:
        """The first log-probabilities and the state, from those with which each stepper begins."""
        assert len(begun) == len(self.steppers)
        return mean_log_probs([log_probs for log_probs, _ in begun]), tuple(state for _, state in begun)

    def step(self, tokens: Int[Tensor, " R"], state: tuple[Any, ...]) -> tuple[Float[Tensor, "R V"], tuple[Any, ...]]:
        return self.start([stepper.step(tokens, own) for stepper, own in zip(self.steppers, state, strict=True)])

    def reorder(self, state: tuple[Any, ...], rows: Int[Tensor, " R"]) -> tuple[Any, ...]:
        return tuple(stepper.reorder(own, rows) for stepper, own in zip(self.steppers, state, strict=True))


def mean_log_probs(log_probs: Sequence[Float[Tensor, "R _"]]) -> Float[Tensor, "R V"]:
    """log (1/n Σ_i exp(log_probs_i))."""
    sizes = [each.shape[1] for each in log_probs]
    if len(set(sizes)) > 1:
        raise RegardError(
            f"The models of an ensemble must share one vocabulary; these have {', '.join(map(str, sizes))} tokens. "
            f"Take models that were trained with the same tokenizer."
        )
    # Two at a time: no tensor of all n is made.
    return reduce(torch.logaddexp, log_probs) - math.log(len(log_probs))
