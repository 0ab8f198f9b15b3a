"""The fixed window: the last few words side by side."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.taps import Taps, keep
from regard.mixers.config import WindowConfig


class Window(nn.Module):
    """The neural probabilistic language model (Bengio et al. 2003), n = n_window.

    h_t = tanh(W [x_{t-n+1}; ...; x_t] + b)
    y_t = U h_t + c

    Before the start of a text stand zeros. The paper's softmax reads h_t; here U brings it back to width D first, so
    that the head is the same for every mixer. The paper's direct connections from x to the softmax are left out.
    """

    n_layers = 1  # of those that are D wide
    carries_state = True
    max_context: int | None = None

    def __init__(self, config: WindowConfig) -> None:
        super().__init__()
        self.n_window, self.d_model = config.n_window, config.d_model
        self.hidden = nn.Linear(config.n_window * config.d_model, config.d_hidden)  # W, b
        self.out = nn.Linear(config.d_hidden, config.d_model)  # U, c
        self.dropout = nn.Dropout(config.p_dropout)
        for layer in (self.hidden, self.out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        state: Float[Tensor, "B P D"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B P D"]]:
        B, T, _ = x.shape
        past = self.start(B, T, x) if state is None else state
        x = torch.cat([past, x], dim=1)  # (B, n-1+T, D)
        windows = x.unfold(1, self.n_window, 1).transpose(2, 3).reshape(B, T, -1)  # (B, T, n D), oldest first
        h = keep(taps, "layers.0.hidden", self.dropout(torch.tanh(self.hidden(windows))))  # (B, T, F)
        return self.out(h), x[:, T:]

    def read_layers(self, x: Float[Tensor, "B T D"], taps: Taps | None = None) -> tuple[Float[Tensor, "B T D"], ...]:
        """x and y: the layers between them are of another width."""
        return x, self(x, None, taps)[0]

    def start(self, B: int, capacity: int, like: Tensor) -> Float[Tensor, "B P D"]:
        return like.new_zeros(B, self.n_window - 1, self.d_model)

    def flops_per_token(self, n_context: int) -> int:
        return 2 * (self.hidden.in_features + self.out.out_features) * self.hidden.out_features
