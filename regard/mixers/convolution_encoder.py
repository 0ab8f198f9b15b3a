"""Gated convolutions that see both sides, one above the other."""

import math
from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.convolution import CausalConvolution
from regard.layers.taps import Taps
from regard.mixers.encoder import Ends

N_WINDOW = 3


class SpanBlock(nn.Module):
    """x + a ⊗ σ(g),  a, g = conv(norm(x)), over the N_WINDOW vectors around each position, `dilation` steps apart.

    Padding is zero to the convolution, as is what lies beyond either end.
    """

    def __init__(self, d_model: int, dilation: int, p_dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.convolution = CausalConvolution(d_model, 2 * d_model, N_WINDOW, dilation)
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> Float[Tensor, "B S D"]:
        n_after = (N_WINDOW // 2) * self.convolution.dilation
        n_past = (N_WINDOW - 1) * self.convolution.dilation
        around = functional.pad(self.norm(x) * mask[..., None], (0, 0, n_past - n_after, n_after))
        # The convolution looks at its past alone: read n_after positions late, its past lies on both sides.
        both, _ = self.convolution(around[:, n_past:], around[:, :n_past], taps)  # (B, S, 2 D)
        if taps is None:
            gated = functional.glu(both, dim=-1)
        else:
            a, g = both.chunk(2, dim=-1)
            gated = a * taps.keep("gates.output", g.sigmoid())
        y: Tensor = x + self.dropout(gated)
        return y


class ConvolutionEncoder(nn.Module):
    """x^l = x^{l-1} + a ⊗ σ(g),  a, g = conv_l(norm(x^{l-1})),  s = norm(x^L) (after Gehring et al. 2017).

    Windows of 3, 1, 2, 4, ... steps apart, so that L layers see 2^L - 1 positions on each side. The paper's windows are
    never spread out, and its positions are told by embeddings.
    """

    max_context: int | None = None
    n_ends = 0

    def __init__(self, d_model: int, n_layers: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        blocks = [SpanBlock(d_model, 2**index, p_dropout) for index in range(n_layers)]
        self.layers: Sequence[SpanBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(p_dropout)
        for block in blocks:  # every sum is of size 1/√L, so that their total stays of size one
            nn.init.normal_(block.convolution.taps.weight, std=1 / math.sqrt(N_WINDOW * d_model * n_layers))
            nn.init.zeros_(block.convolution.taps.bias)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        x = self.dropout(x)
        for index, block in enumerate(self.layers):
            scope = None if taps is None else taps.scope(f"layers.{index}")
            x = block(x, mask, scope)
            if scope is not None:
                scope.keep("hidden", x)
        return self.norm(x), ()

    def flops(self, n_source: int) -> int:
        return n_source * sum(block.convolution.flops_per_token() for block in self.layers)
