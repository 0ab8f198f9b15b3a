"""What every decoder can do."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from regard.layers.taps import Taps
from regard.mixers.mixer import State

Weights = Float[Tensor, "B T S"]


@runtime_checkable
class Decoder(Protocol):
    """A sequence of vectors and a source in, a sequence of vectors that know their past and the source out."""

    max_context: int | None
    """The longest target it can write; None: no limit."""

    def __call__(
        self, x: Float[Tensor, "B T D"], state: State, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Weights | None, State]:
        """Mix T more vectors; the weights with which each looked at the source, where they are known; the state after.

        A state is used up by the call that takes it. With `taps` the plain path is taken and kept in them.
        """

    def start(
        self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], start: Any, capacity: int | None
    ) -> State:
        """The state before the first vector. What steps need of the source is computed here, once.

        `start` is the encoder's word on it, () if it has none. `capacity` is the most vectors there will be, None where
        all of them come in one call.
        """

    def flops(self, n_source: int, n_target: int) -> int:
        """Forward cost of a target: twice the multiply-adds of the matrix products."""
