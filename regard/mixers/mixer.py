"""What every mixer can do, and what encoders and decoders, the mixers of two sides, can."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from regard.kernels.state import map_state
from regard.layers.taps import Taps

State = Any
"""Nested tuples of tensors with B first, of caches, of what rows share, and whole numbers: what a mixer remembers."""
Ends = tuple[Tensor, ...]
"""The output (B, D) of every layer at its last step, lowest layer first; () where there is no last step."""
Weights = Float[Tensor, "B T S"]


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

    def read_layers(self, x: Float[Tensor, "B T D"], taps: Taps | None = None) -> tuple[Float[Tensor, "B T D"], ...]:
        """Mix a whole text: what the first layer reads, then what each layer gives.

        The last is what a call returns. Layers of another width than D are left out.
        """

    @property
    def n_layers(self) -> int:
        """How many `read_layers` gives beyond the first."""

    def start(self, B: int, capacity: int, like: Tensor) -> State:
        """The state before the first vector, with room for `capacity` of them, of the type and device of `like`."""

    def flops_per_token(self, n_context: int) -> int:
        """Mean forward cost of a token of a text of n_context: twice the multiply-adds of the matrix products.

        A token is charged for the positions that it sees, itself and those before it, and not for what is masked.
        """


@runtime_checkable
class StaticMixer(Protocol):
    """A mixer whose step over a state that stays in its place can be replayed as a CUDA graph."""

    @property
    def has_static_step(self) -> bool:
        """Whether it can as it is: nothing in its state is looked at by Python."""

    def step(self, x: Float[Tensor, "B 1 D"], state: State) -> tuple[Float[Tensor, "B 1 D"], State]:
        """Mix one more vector, with no gradient, over a state whose counts are on the device."""


@runtime_checkable
class Encoder(Protocol):
    """A sequence of vectors in, a sequence of vectors that know both sides out."""

    max_context: int | None
    """The longest source it can read; None: no limit."""
    n_ends: int
    """How many ends it gives."""

    def __call__(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        """Mix S vectors, of which those with mask True are real and stand first; the others change nothing."""

    def flops(self, n_source: int) -> int:
        """Forward cost of a source: twice the multiply-adds of the matrix products."""


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


def select_positions(hidden: Any, which: slice) -> Any:
    """Take some positions of what a model's `hidden` gave: a tensor (B, T, ...) or a tuple of such."""
    return map_state(lambda part: None if part is None else part[:, which], hidden)
