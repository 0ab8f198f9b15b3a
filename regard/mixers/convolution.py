"""Causal convolutions with gates, one above the other."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.convolution import CausalConvolution
from regard.layers.taps import Taps
from regard.mixers.config import ConvolutionConfig

Pasts = tuple[Tensor, ...]
"""What every layer saw last: (B, (k-1) s, D) each, where s is the layer's dilation."""


class ConvolutionBlock(nn.Module):
    """x + a ⊗ σ(g),  a, g = conv(norm(x)): a gated linear unit (Dauphin et al. 2017)."""

    def __init__(self, d_model: int, n_window: int, dilation: int, p_dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.convolution = CausalConvolution(d_model, 2 * d_model, n_window, dilation)
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], past: Float[Tensor, "B P D"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B P D"]]:
        both, past = self.convolution(self.norm(x), past, taps)  # (B, T, 2 D)
        if taps is None:
            return x + self.dropout(functional.glu(both, dim=-1)), past
        a, g = both.chunk(2, dim=-1)
        return x + self.dropout(a * taps.keep("gates.output", g.sigmoid())), past


class Convolution(nn.Module):
    """The gated convolutional language model (Dauphin et al. 2017).

    x^l = x^{l-1} + a ⊗ σ(g),  a, g = conv_l(norm(x^{l-1})),  x^0 = x,  y = norm(x^L)

    The k = n_window vectors that layer l sees lie s^(l-1) steps apart, where s is `dilation_growth`. With s = 1, as in
    the paper, a position hears of L(k-1) + 1 others; with s = 2, as in WaveNet (van den Oord et al. 2016), of
    (2^L - 1)(k-1) + 1.

    The paper normalises weights, and its sums go round blocks of up to three convolutions with a bottleneck; here, as
    in the Transformer beside it, each layer's input is normalised and every sum goes round one convolution.
    """

    carries_state = True
    max_context: int | None = None

    def __init__(self, config: ConvolutionConfig) -> None:
        super().__init__()
        D, k, L = config.d_model, config.n_window, config.n_layers
        blocks = [ConvolutionBlock(D, k, s, config.p_dropout) for s in config.dilations]
        self.layers: Sequence[ConvolutionBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(D)
        for block in blocks:  # every sum is of size 1/√L, so that their total stays of size one
            nn.init.normal_(block.convolution.taps.weight, std=1 / math.sqrt(k * D * L))
            nn.init.zeros_(block.convolution.taps.bias)

    def forward(
        self, x: Float[Tensor, "B T D"], state: Pasts | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Pasts]:
        pasts = self.start(x.shape[0], x.shape[1], x) if state is None else state
        after = []
        for index, (block, past) in enumerate(zip(self.layers, pasts, strict=True)):
            scope = None if taps is None else taps.scope(f"layers.{index}")
            x, past = block(x, past, scope)
            if scope is not None:
                scope.keep("hidden", x)
            after.append(past)
        return self.norm(x), tuple(after)

    def start(self, B: int, capacity: int, like: Tensor) -> Pasts:
        return tuple(block.convolution.start(B, like) for block in self.layers)

    def flops_per_token(self, n_context: int) -> int:
        return sum(block.convolution.flops_per_token() for block in self.layers)
