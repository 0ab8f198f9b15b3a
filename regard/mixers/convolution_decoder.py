"""Causal convolutions that write a target, and look at the source in every layer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.state import Pointing, Shared
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.taps import Taps, keep, scope
from regard.mixers.convolution import N_WINDOW, ConvolutionBlock, Pasts, initialise
from regard.mixers.mixer import Weights


class Written(NamedTuple):
    """What is known before a step: what every layer saw last, and the source."""

    pasts: Pasts
    source: Shared | Pointing
    """What all targets of a source share: every layer's keys and values of it, and which of its positions are there."""


class LookingBlock(nn.Module):
    """h = x + a ⊗ σ(g),  a, g = conv(norm(x));   y = h + attention(norm(h), source)"""

    def __init__(self, d_model: int, dilation: int, p_dropout: float) -> None:
        super().__init__()
        self.past = ConvolutionBlock(d_model, N_WINDOW, dilation, p_dropout)
        self.norm = nn.LayerNorm(d_model)
        self.cross_attention = CrossAttention(d_model, 1, p_dropout)
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        past: Float[Tensor, "R P D"],
        source: SourceKeysAndValues,
        taps: Taps | None = None,
        wants_weights: bool = False,
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R P D"], Float[Tensor, "R 1 T S"] | None]:
        """y, what the convolution sees of it at the next step, and the weights where they are wanted or tapped."""
        h, past = self.past(x, past, taps)
        looked, A = self.cross_attention(self.norm(h), source, taps, wants_weights)
        return keep(taps, "cross_residual", h + self.dropout(looked)), past, A


class ConvolutionDecoder(nn.Module):
    """x^l = block_l(x^{l-1}, s),  x^0 = x,  y = norm(x^L) (after Gehring et al. 2017, "ConvS2S")

    Gated convolutions over the past, each followed by a look at the source with one head, so that a layer can ask by
    what the layer below it found. Windows of 3, 1, 2, 4, ... steps apart (as ByteNet's, Kalchbrenner et al. 2016), so
    that with L layers a word hears of the 2 (2^L - 1) words before it, and of none before these.

    ConvS2S spreads its windows nowhere, tells positions by embeddings, and scores by q·k with keys that are the
    source's states; here keys and values have matrices of their own and scores are q·k/√D, as in the Transformer
    beside it. The weights on the source are those of the last layer, where `gives_weights` asks for them.
    """

    max_context: int | None = None

    def __init__(self, d_model: int, n_layers: int, p_dropout: float = 0.0, gives_weights: bool = False) -> None:
        super().__init__()
        blocks = [LookingBlock(d_model, 2**index, p_dropout) for index in range(n_layers)]
        self.layers: Sequence[LookingBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(p_dropout)
        self.gives_weights = gives_weights
        initialise([block.past for block in blocks])

    def forward(
        self, x: Float[Tensor, "R T D"], state: Written, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "R T D"], Weights | None, Written]:
        sources, mask = state.source.entries
        A, after = None, []
        x = self.dropout(x)
        for index, (block, past) in enumerate(zip(self.layers, state.pasts, strict=True)):
            inner = scope(taps, f"layers.{index}")
            keys, values = sources[index]
            source = SourceKeysAndValues(keys, values, mask, state.source.of)
            wants_weights = self.gives_weights and index == len(self.layers) - 1
            x, past, A = block(x, past, source, inner, wants_weights)
            x = keep(inner, "hidden", x)
            after.append(past)
        weights = A.mean(dim=1) if self.gives_weights and A is not None else None
        return self.norm(x), weights, Written(tuple(after), state.source)

    def start(
        self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], start: Any, capacity: int | None
    ) -> Written:
        """However long the target, a layer keeps as many vectors as its window reaches back."""
        like = self.norm.weight  # the states may be of a lower precision
        sources = tuple(block.cross_attention.keys_and_values(states) for block in self.layers)
        pasts = tuple(block.past.convolution.start(len(states), like) for block in self.layers)
        return Written(pasts, Shared((sources, mask)))

    def flops(self, n_source: int, n_target: int) -> int:
        own = n_target * sum(block.past.convolution.flops_per_token() for block in self.layers)
        return own + sum(block.cross_attention.flops(n_source, n_target) for block in self.layers)
