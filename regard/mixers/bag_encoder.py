"""The encoder that knows no order."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.taps import Taps
from regard.mixers.encoder import Ends


class BagEncoder(nn.Module):
    """s_i = x_i: every word by itself. Whoever looks at these states cannot tell in which order they stood."""

    max_context: int | None = None
    n_ends = 0

    def __init__(self, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        return self.dropout(x), ()

    def flops(self, n_source: int) -> int:
        return 0
