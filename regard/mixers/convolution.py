"""Convolutions with gates, one above the other: causal ones, and ones that see both sides."""

import math
from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.convolution import CausalConvolution
from regard.layers.taps import Taps, keep, scope
from regard.mixers.config import ConvolutionConfig
from regard.mixers.mixer import Ends

Pasts = tuple[Tensor, ...]
"""What every layer saw last: (B, (k-1) s, D) each, where s is the layer's dilation."""
N_WINDOW = 3
"""Vectors that a convolution of an encoder or a decoder sees."""


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
        return self._add(x, both, taps), past

    def see_both_sides(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> Float[Tensor, "B S D"]:
        """Convolve over the vectors around each position; padding is zero, as is what lies beyond either end."""
        n_past = (self.convolution.n_window - 1) * self.convolution.dilation
        n_after = (self.convolution.n_window // 2) * self.convolution.dilation
        around = functional.pad(self.norm(x) * mask[..., None], (0, 0, n_past - n_after, n_after))
        # The convolution looks at its past alone: read n_after positions late, its past lies on both sides.
        both, _ = self.convolution(around[:, n_past:], around[:, :n_past], taps)  # (B, S, 2 D)
        return self._add(x, both, taps)

    def _add(self, x: Tensor, both: Tensor, taps: Taps | None) -> Tensor:
        if taps is None:
            return x + self.dropout(functional.glu(both, dim=-1))  # type: ignore[no-any-return]
        a, g = both.chunk(2, dim=-1)
        return x + self.dropout(a * taps.keep("gates.output", g.sigmoid()))  # type: ignore[no-any-return]


def initialise(blocks: Sequence[ConvolutionBlock]) -> None:
    """Every sum starts at size 1/√L, so that the total of L blocks stays of size one."""
    for block in blocks:
        taps = block.convolution.taps
        nn.init.normal_(taps.weight, std=1 / math.sqrt(taps.in_features * len(blocks)))
        nn.init.zeros_(taps.bias)


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
        D = config.d_model
        blocks = [ConvolutionBlock(D, config.n_window, s, config.p_dropout) for s in config.dilations]
        self.layers: Sequence[ConvolutionBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(D)
        initialise(blocks)

    def forward(
        self, x: Float[Tensor, "B T D"], state: Pasts | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Pasts]:
        pasts = self.start(x.shape[0], x.shape[1], x) if state is None else state
        after = []
        for index, (block, past) in enumerate(zip(self.layers, pasts, strict=True)):
            inner = scope(taps, f"layers.{index}")
            x, past = block(x, past, inner)
            x = keep(inner, "hidden", x)
            after.append(past)
        return self.norm(x), tuple(after)

    def read_layers(self, x: Float[Tensor, "B T D"], taps: Taps | None = None) -> tuple[Float[Tensor, "B T D"], ...]:
        outputs, pasts = [x], self.start(x.shape[0], x.shape[1], x)
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            outputs.append(keep(inner, "hidden", block(outputs[-1], pasts[index], inner)[0]))
        return *outputs[:-1], self.norm(outputs[-1])

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    def start(self, B: int, capacity: int, like: Tensor) -> Pasts:
        return tuple(block.convolution.start(B, like) for block in self.layers)

    def flops_per_token(self, n_context: int) -> int:
        return sum(block.convolution.flops_per_token() for block in self.layers)


class ConvolutionEncoder(nn.Module):
    """x^l = x^{l-1} + a ⊗ σ(g),  a, g = conv_l(norm(x^{l-1})),  s = norm(x^L) (after Gehring et al. 2017).

    Windows of 3, 1, 2, 4, ... steps apart, so that L layers see 2^L - 1 positions on each side. The paper's windows are
    never spread out, and its positions are told by embeddings.
    """

    max_context: int | None = None
    n_ends = 0

    def __init__(self, d_model: int, n_layers: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        blocks = [ConvolutionBlock(d_model, N_WINDOW, 2**index, p_dropout) for index in range(n_layers)]
        self.layers: Sequence[ConvolutionBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(p_dropout)
        initialise(blocks)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        x = self.dropout(x)
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            x = keep(inner, "hidden", block.see_both_sides(x, mask, inner))
        return self.norm(x), ()

    def read_layers(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], ...]:
        """x^0 up to x^{L-1}, then s."""
        outputs = [self.dropout(x)]
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            outputs.append(keep(inner, "hidden", block.see_both_sides(outputs[-1], mask, inner)))
        return *outputs[:-1], self.norm(outputs[-1])

    def flops(self, n_source: int) -> int:
        return n_source * sum(block.convolution.flops_per_token() for block in self.layers)
