"""Recurrent layers, one above the other: Elman, GRU and LSTM differ only in the layer."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.elman import Elman
from regard.layers.gru import GRU
from regard.layers.lstm import LSTM
from regard.layers.record import Record
from regard.mixers.config import GRUConfig, LSTMConfig, RNNConfig

LayerStates = tuple[Any, ...]


class Recurrent(nn.Module):
    """h^l_t = layer_l(h^{l-1}_t, h^l_{t-1}),  h^0 = x,  y = h^L.

    Dropout falls between layers and on the output, never on the way from one step to the next (Zaremba et al. 2014).
    """

    carries_state = True
    max_context: int | None = None

    def __init__(self, layers: Sequence[Elman | GRU | LSTM], p_dropout: float = 0.0) -> None:
        super().__init__()
        self.layers: Sequence[Elman | GRU | LSTM] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.dropout = nn.Dropout(p_dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], state: LayerStates | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], LayerStates]:
        if state is None:
            state = self.start(x.shape[0], x.shape[1], x)
        after = []
        with full_precision_on_cpu(x):
            for index, layer in enumerate(self.layers):
                scope = None if record is None else record.scope(f"layers.{index}")
                x, layer_state = layer(x, state[index], scope)
                if scope is not None:
                    scope.keep("hidden", x)
                x = self.dropout(x)
                after.append(layer_state)
        return x, tuple(after)

    def start(self, B: int, capacity: int, like: Tensor) -> LayerStates:
        return tuple(layer.start(B, like) for layer in self.layers)

    def flops_per_token(self, n_context: int) -> int:
        return sum(layer.flops_per_token() for layer in self.layers)


def full_precision_on_cpu(x: Tensor) -> AbstractContextManager[None]:
    """Autocast off, on the CPU: many have no bfloat16 LSTM ("could not create a primitive descriptor")."""
    is_low = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    return torch.autocast("cpu", enabled=False) if is_low else nullcontext()


def rnn(config: RNNConfig) -> Recurrent:
    return Recurrent([Elman(config.d_model, config.d_model) for _ in range(config.n_layers)], config.p_dropout)


def gru(config: GRUConfig) -> Recurrent:
    return Recurrent([GRU(config.d_model, config.d_model) for _ in range(config.n_layers)], config.p_dropout)


def lstm(config: LSTMConfig) -> Recurrent:
    return Recurrent([LSTM(config.d_model, config.d_model) for _ in range(config.n_layers)], config.p_dropout)
