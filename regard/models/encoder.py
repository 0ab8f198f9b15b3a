"""What every encoder is: a model that reads whole texts and gives a vector for each token, layer by layer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.layers.taps import Taps


@runtime_checkable
class Encoder(Protocol):
    """Reads whole texts, padded at the right, and gives a vector for each token, layer by layer."""

    d_model: int
    """Width of the states."""
    n_layers: int
    """States beyond the embeddings."""
    max_positions: int | None
    """The longest text it can read at once; None: any."""

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], ...]:
        """States by layer: the embeddings first, the last layer's output last.

        mask is True where there is a token. What stands at masked places does not matter and never reaches another
        place. segments are 0 in the first text of a pair and 1 in the second; None: there is one text. With `taps` the
        plain path is taken, and what it computed is kept in them.
        """

    def flops(self, n_tokens: int) -> int:
        """Forward cost of a text of so many tokens: twice the multiply-adds of the matrix products."""
