"""Recurrent layers that write a target: with one vector of the source, or looking at all of it at every step."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.state import Shared
from regard.layers.recurrent import RecurrentLayer
from regard.layers.source_attention import Looked, SourceAttention
from regard.layers.taps import Taps, scope
from regard.mixers.mixer import Weights
from regard.mixers.recurrent import LayerStates, Recurrent

Writing = tuple[LayerStates, Any, Any]
"""The layers' states; the last h̃ (B, D) where it is fed, else (); what is looked at (`SourceAttention`), shared by
all targets of a source, else ()."""


class RecurrentDecoder(nn.Module):
    """h = layers(x), from the state that the encoder's end gives (Cho et al. 2014; Sutskever et al. 2014)

    none           y_t = h_t: all that is known of the source went through the first state
    attention      y_t = h̃_t = tanh(W_c [c_t; h_t]), see SourceAttention (Luong et al. 2015)
    input feeding  the layers read [x_t; h̃_{t-1}]: where it looked last helps to know where to look next

    Without input feeding all T steps are one call of the fused kernel, and one attention. With it a step needs the one
    before, so that there is a loop; the products with x are then computed for all steps at once before it.
    """

    max_context: int | None = None

    def __init__(
        self, kind: str, d_model: int, n_layers: int, score: str, feeds_input: bool = False, p_dropout: float = 0.0
    ) -> None:
        """`score` is the name of a score function, or "none"."""
        assert not (feeds_input and score == "none"), "only what attention gives is fed"
        super().__init__()
        widths = [2 * d_model if feeds_input else d_model] + [d_model] * (n_layers - 1)
        self.recurrent = Recurrent([RecurrentLayer(kind, d_in, d_model) for d_in in widths], p_hidden=p_dropout)
        self.attention = None if score == "none" else SourceAttention(d_model, score)
        self.feeds_input = feeds_input
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], state: Writing, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Weights | None, Writing]:
        states, fed, shared = state
        if self.attention is None:
            y, states = self.recurrent(x, states, taps)
            return self.dropout(y), None, (states, fed, shared)
        looked, inner = shared.gather(), scope(taps, self._top)
        if inner is not None:
            looked = self.attention.keep_source(looked, len(x), inner)
        if self.feeds_input:
            y, a, states, fed = self._feed(x, states, fed, looked, self.attention, taps)
        else:
            h, states = self.recurrent(x, states, taps)
            y, a = self.attention(h, looked, inner)
        return self.dropout(y), a, (states, fed, shared)

    @property
    def _top(self) -> str:
        """What the last layer is called in taps."""
        return f"layers.{len(self.recurrent.layers) - 1}"

    def _feed(
        self,
        x: Tensor,
        states: LayerStates,
        fed: Tensor,
        looked: Looked,
        attention: SourceAttention,
        taps: Taps | None,
    ) -> tuple[Tensor, Tensor, LayerStates, Tensor]:
        """Feed every step what attention gave the one before, with as little as can be inside the loop."""
        layers = self.recurrent.layers
        weights = [layer.weights() for layer in layers]
        W, _, b, _ = weights[0]
        W_x, W_fed = W.chunk(2, dim=1)
        outputs, looks = [], []
        steps = None if taps is None else taps.steps(x.shape[1])
        for from_x in functional.linear(x, W_x, b).unbind(1):
            from_input = from_x + functional.linear(fed, W_fed)
            after: list[Any] = []
            for index, layer in enumerate(layers):
                if index > 0:
                    lower = self.recurrent.between(after[-1][0])
                    from_input = functional.linear(lower, weights[index][0], weights[index][2])
                now = None if steps is None else steps.now(f"layers.{index}")
                after.append(layer.step(from_input, states[index], weights[index], now))
            states = tuple(after)
            y, a = attention(states[-1][0][:, None], looked, None if steps is None else steps.now(self._top))
            fed = y[:, 0]
            outputs.append(y)
            looks.append(a)
        if steps is not None:
            steps.finish()
        return torch.cat(outputs, dim=1), torch.cat(looks, dim=1), states, fed

    def start(
        self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], start: Any, capacity: int | None
    ) -> Writing:
        B, D = states.shape[0], states.shape[2]
        like = self.recurrent.layers[0].weights()[0]  # the states may be of a lower precision
        layers = start if start else self.recurrent.start(B, 0, like)
        if self.attention is None:
            return layers, (), ()
        looked = Shared(self.attention.start(states, mask))
        return layers, states.new_zeros(B, D) if self.feeds_input else (), looked

    def flops(self, n_source: int, n_target: int) -> int:
        layers = n_target * self.recurrent.flops_per_token(n_target)
        return layers + (0 if self.attention is None else self.attention.flops(n_source, n_target))
