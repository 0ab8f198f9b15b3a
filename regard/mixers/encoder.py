"""What every encoder can do."""

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from regard.layers.taps import Taps

Ends = tuple[Tensor, ...]
"""The output (B, D) of every layer at its last step, lowest layer first; () where there is no last step."""


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
