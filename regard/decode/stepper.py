"""What search and sampling ask of whatever they decode: a language model, a translator, several of them at once."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor


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
