"""What every mixer can do."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.layers.record import Record
from regard.layers.shared_rows import Shared

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
        self, x: Float[Tensor, "B T D"], state: State | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """Mix T more vectors.

        `state` None is the start of a text. A mixer that carries state always returns the state after the last
        vector; another returns one only where it was handed one. A state is used up by the call that takes it.
        With a `record` the plain path is taken and its taps are kept.
        """

    def start(self, B: int, capacity: int, like: Tensor) -> State:
        """The state before the first vector, with room for `capacity` of them, of the type and device of `like`."""

    def flops_per_token(self, n_context: int) -> int:
        """Forward cost of a token within n_context others: twice the multiply-adds of the matrix products."""


def reorder(state: State, rows: Tensor) -> State:
    """The state whose batch is `rows` of this one's."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, Shared):
        return state.rows(rows)
    return tuple(reorder(part, rows) for part in state) if isinstance(state, tuple) else state


def positions(hidden: Any, which: slice) -> Any:
    """Some positions of what a model's `hidden` gave: a tensor (B, T, ...) or a tuple of such."""
    if isinstance(hidden, Tensor):
        return hidden[:, which]
    parts = [None if part is None else positions(part, which) for part in hidden]
    return type(hidden)(*parts)


def tensors_of(tree: Any) -> list[Tensor]:
    """All tensors in nested tuples."""
    if isinstance(tree, Tensor):
        return [tree]
    return [tensor for part in tree for tensor in tensors_of(part)] if isinstance(tree, tuple) else []
