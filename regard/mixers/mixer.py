"""What every mixer can do."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.kernels.state import map_state
from regard.layers.taps import Taps

State = Any
"""Nested tuples of tensors with B first, or of what rows share, and whole numbers: what a mixer remembers."""


@runtime_checkable
class Mixer(Protocol):
    """A sequence of vectors in, a sequence of vectors that know their past out."""

    max_context: int | None
    """The longest past it can see at once; None: no limit."""
    carries_state: bool
    """Whether its state goes on from one training window to the next."""

    def __call__(
        self, x: Float[Tensor, "B T D"], state: State | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """Mix T more vectors.

        `state` None is the start of a text. A mixer that carries state always returns the state after the last
        vector; another returns one only where it was handed one. A state is used up by the call that takes it.
        With `taps` the plain path is taken, and what it computed is kept in them.
        """

    def start(self, B: int, capacity: int, like: Tensor) -> State:
        """The state before the first vector, with room for `capacity` of them, of the type and device of `like`."""

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of a token within n_context others: twice the multiply-adds of the matrix products."""


@runtime_checkable
class StaticMixer(Protocol):
    """A mixer whose step over a state that stays in its place can be replayed as a CUDA graph."""

    @property
    def has_static_step(self) -> bool:
        """Whether it can as it is: nothing in its state is looked at by Python."""

    def step(self, x: Float[Tensor, "B 1 D"], state: State) -> tuple[Float[Tensor, "B 1 D"], State]:
        """Mix one more vector, with no gradient, over a state whose counts are on the device."""


def select_positions(hidden: Any, which: slice) -> Any:
    """Take some positions of what a model's `hidden` gave: a tensor (B, T, ...) or a tuple of such."""
    return map_state(lambda part: None if part is None else part[:, which], hidden)
