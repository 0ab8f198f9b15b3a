"""Recurrent layers over a source, one above the other, in one direction or in both."""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.bidirectional import Bidirectional
from regard.layers.taps import Taps, keep, scope
from regard.mixers.mixer import Ends
from regard.mixers.recurrent import full_precision


class RecurrentEncoder(nn.Module):
    """h^l = layer_l(dropout(h^{l-1})),  h^0 = x,  s = h^L; every layer reads the source one way or both ways.

    Where x was made of something that is dropped already, `drops_input` is false.
    """

    max_context: int | None = None

    def __init__(
        self,
        kind: str,
        d_model: int,
        n_layers: int,
        is_bidirectional: bool,
        p_dropout: float = 0.0,
        drops_input: bool = True,
    ) -> None:
        super().__init__()
        layers = [Bidirectional(kind, d_model, is_bidirectional) for _ in range(n_layers)]
        self.layers: Sequence[Bidirectional] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.dropout = nn.Dropout(p_dropout)
        self.n_ends, self.drops_input = n_layers, drops_input

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        lengths, ends = mask.sum(dim=1), []
        with full_precision(x, is_fused=taps is None):
            for index, layer in enumerate(self.layers):
                inner = scope(taps, f"layers.{index}")
                x, end = layer(self._drop(x, index), lengths, inner)
                ends.append(end)
                x = keep(inner, "hidden", x)
        return self.dropout(x), tuple(ends)

    def read_layers(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], ...]:
        """x and the output of every layer; the last is what a call returns."""
        lengths, outputs = mask.sum(dim=1), [x]
        with full_precision(x, is_fused=taps is None):
            for index, layer in enumerate(self.layers):
                inner = scope(taps, f"layers.{index}")
                outputs.append(keep(inner, "hidden", layer(self._drop(outputs[-1], index), lengths, inner)[0]))
        return *outputs[:-1], self.dropout(outputs[-1])

    def _drop(self, x: Float[Tensor, "B S D"], index: int) -> Float[Tensor, "B S D"]:
        """What layer `index` reads."""
        return self.dropout(x) if index or self.drops_input else x

    def flops(self, n_source: int) -> int:
        return n_source * sum(layer.flops_per_token() for layer in self.layers)
