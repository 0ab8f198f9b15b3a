"""What an encoder has made of a source, for a decoder to look at."""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.kernels.state import reorder


class Source(NamedTuple):
    """B sources: sentences, or pictures cut into regions. B comes first in every tensor."""

    states: Float[Tensor, "B S D"]
    """A vector for every token or region."""
    mask: Bool[Tensor, "B S"]
    """True where there is one; the real ones stand first."""
    start: Any = ()
    """The decoder's first state where the encoder gives it one, as nested tuples; () where it does not."""
    words: Int[Tensor, "B S"] | None = None
    """The word of the target's extended vocabulary that each position stands for, -1: none. None: no copying."""

    def rows(self, rows: Int[Tensor, " R"]) -> "Source":
        """The sources `rows` of these; a row may come twice."""
        return reorder(self, rows)  # type: ignore[no-any-return]
