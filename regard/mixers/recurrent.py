"""Recurrent layers, one above the other: Elman, GRU and LSTM differ only in the layer."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.fused_recurrence import fused_recurrence
from regard.layers.dropout import sequence_dropout
from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps, scope
from regard.mixers.config import RecurrentConfig

LayerStates = tuple[Any, ...]


class Recurrent(nn.Module):
    """h^l_t = layer_l(h^{l-1}_t, h^l_{t-1}),  h^0 = x,  y = h^L.

    Dropout falls between layers (`p_hidden`; None: as on the output) and on the output (`p_dropout`), never on the way
    from one step to the next (Zaremba et al. 2014). With `is_variational` a mask is the same at all steps of a window
    (Gal & Ghahramani 2016). What is dropped on that way is weights, by the layers themselves (Merity et al. 2018).
    """

    carries_state = True
    has_static_step = True
    max_context: int | None = None

    def __init__(
        self,
        layers: Sequence[RecurrentLayer],
        p_dropout: float = 0.0,
        p_hidden: float | None = None,
        is_variational: bool = False,
    ) -> None:
        super().__init__()
        self.layers: Sequence[RecurrentLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.p_hidden = p_dropout if p_hidden is None else p_hidden
        self.between = sequence_dropout(self.p_hidden, is_variational)
        self.dropout = sequence_dropout(p_dropout, is_variational)
        widths = {width for layer in layers for width in (layer.d_in, layer.d_hidden)}
        has_plain_dropout = not (is_variational and self.p_hidden)
        has_plain_weights = not any(layer.p_weight for layer in layers)
        self.fits_one_call = len(layers) > 1 and len(widths) == 1 and has_plain_dropout and has_plain_weights

    def forward(
        self, x: Float[Tensor, "B T I"], state: LayerStates | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], LayerStates]:
        if state is None:
            state = self.start(x.shape[0], x.shape[1], x)
        with full_precision(x, is_fused=taps is None):
            if taps is None and self._gains_by_one_call(x):
                y, after = self.at_once(x, state)
            else:
                y, after = self.layer_by_layer(x, state, taps)
        return self.dropout(y), after

    def layer_by_layer(
        self, x: Float[Tensor, "B T I"], state: LayerStates, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], LayerStates]:
        """All layers, the plain way; nothing is dropped from the last one's output."""
        after = []
        for index, layer in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            x, layer_state = layer(x if index == 0 else self.between(x), state[index], inner)
            after.append(layer_state)
        return x, tuple(after)

    def read_layers(self, x: Float[Tensor, "B T I"], taps: Taps | None = None) -> tuple[Tensor, ...]:
        """x and the output of every layer that is as wide as the last."""
        y, state, outputs = x, self.start(x.shape[0], x.shape[1], x), [x]
        with full_precision(x, is_fused=taps is None):
            for index, layer in enumerate(self.layers):
                y, _ = layer(y if index == 0 else self.between(y), state[index], scope(taps, f"layers.{index}"))
                outputs.append(y)
        same = [each for each in outputs if each.shape[-1] == y.shape[-1]]
        return *same[:-1], self.dropout(y)

    @property
    def n_layers(self) -> int:
        return sum(layer.d_hidden == self.layers[-1].d_hidden for layer in self.layers)

    def at_once(self, x: Float[Tensor, "B T D"], state: LayerStates) -> tuple[Float[Tensor, "B T D"], LayerStates]:
        """All layers in one call of the fused kernel, which also drops between them; for stacks that `fits_one_call`.

        The masks come from other random numbers than those of `layer_by_layer`; without dropout both are equal.
        """
        before = tuple(torch.stack(parts) for parts in zip(*state, strict=True))  # h, or h and c; (L, B, H) each
        weights = [layer.weights() for layer in self.layers]
        y, after = fused_recurrence(self.layers[0].kind, x, before, weights, self.p_hidden, self.training)
        return y, tuple(zip(*(part.unbind(0) for part in after), strict=True))

    def _gains_by_one_call(self, x: Float[Tensor, "B T D"]) -> bool:
        """On a GPU, for more than one step. On a CPU both ways took the same time (2 x 192 and 2 x 650, within 5%).

        cuDNN's dropout has random numbers of its own, which no seed and no checkpoint reaches: a run that asked for
        deterministic operations is spared them.
        """
        is_random = self.training and self.p_hidden > 0
        is_allowed = not (is_random and torch.are_deterministic_algorithms_enabled())
        return x.is_cuda and x.shape[1] > 1 and self.fits_one_call and is_allowed

    def step(self, x: Float[Tensor, "B 1 D"], state: LayerStates) -> tuple[Float[Tensor, "B 1 D"], LayerStates]:
        return self(x, state)  # type: ignore[no-any-return]

    def start(self, B: int, capacity: int, like: Tensor) -> LayerStates:
        return tuple(layer.start(B, like) for layer in self.layers)

    def flops_per_token(self, n_context: int) -> int:
        return sum(layer.flops_per_token() for layer in self.layers)


def full_precision(x: Tensor, is_fused: bool) -> AbstractContextManager[None]:
    """Autocast off, but for the fused kernels of a GPU, which see to it themselves (`fused_recurrence`).

    Many CPUs have no bfloat16 LSTM ("could not create a primitive descriptor").
    """
    kind = x.device.type
    is_low = kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind) and not (kind == "cuda" and is_fused)
    return torch.autocast(kind, enabled=False) if is_low else nullcontext()


def recurrent(kind: str, config: RecurrentConfig, has_output_dropout: bool = True) -> Recurrent:
    """Stack layers of width d_hidden; the last returns to d_model, so that the embeddings can be the output weights."""
    d_hidden = config.d_model if config.d_hidden is None else config.d_hidden
    widths = [config.d_model, *[d_hidden] * (config.n_layers - 1), config.d_model]
    layers = [RecurrentLayer(kind, d_in, d_out, config.p_weight) for d_in, d_out in pairwise(widths)]
    p_hidden = config.p_dropout if config.p_hidden is None else config.p_hidden
    return Recurrent(layers, config.p_dropout if has_output_dropout else 0.0, p_hidden, config.is_variational)
