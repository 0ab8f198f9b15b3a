"""The bag: an average that has forgotten all order, and an encoder that never knew it."""

from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.taps import Taps, keep
from regard.mixers.config import BagConfig
from regard.mixers.mixer import Ends

SumAndCount = tuple[Float[Tensor, "B D"], int]


class Bag(nn.Module):
    """A deep averaging network (Iyyer et al. 2015), at every position over what came before it.

    a_t = (x_1 + ... + x_t) / t
    z_l = relu(W_l z_{l-1} + b_l),  z_0 = a_t,  l = 1 ... n_layers
    y_t = W z_n + b

    The paper averages a whole text and drops whole words while training; here the average runs along the text and
    dropout takes single numbers.
    """

    n_layers = 1  # of those that are D wide
    carries_state = False

    def __init__(self, config: BagConfig) -> None:
        super().__init__()
        self.max_context: int | None = config.max_context
        widths = [config.d_model] + [config.d_hidden] * config.n_layers
        layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
        for layer in layers:  # He et al. 2015: half of the ReLUs are silent
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)
        self.out = nn.Linear(config.d_hidden, config.d_model)
        self.dropout = nn.Dropout(config.p_dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], state: SumAndCount | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], SumAndCount | None]:
        total = x.cumsum(dim=1)
        n = 0
        if state is not None:
            before, n = state
            total = total + before[:, None]
            state = total[:, -1], n + x.shape[1]
        counts = torch.arange(n + 1, n + 1 + x.shape[1], device=x.device, dtype=x.dtype)
        z = total / counts[:, None]  # a_t: (B, T, D)
        for index, layer in enumerate(self.layers):
            z = keep(taps, f"layers.{index}.hidden", self.dropout(functional.relu(layer(z))))  # (B, T, F)
        return self.out(z), state

    def read_layers(self, x: Float[Tensor, "B T D"], taps: Taps | None = None) -> tuple[Float[Tensor, "B T D"], ...]:
        """x and y: the layers between them are of another width."""
        return x, self(x, None, taps)[0]

    def start(self, B: int, capacity: int, like: Tensor) -> SumAndCount:
        return like.new_zeros(B, self.out.out_features), 0

    def flops_per_token(self, n_context: int) -> int:
        return 2 * sum(m.in_features * m.out_features for m in self.modules() if isinstance(m, nn.Linear))


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

    def read_layers(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], ...]:
        return x, self.dropout(x)

    def flops(self, n_source: int) -> int:
        return 0
