"""A vector for a word from its characters, by convolutions."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.highway import Highway

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": functional.relu, "tanh": torch.tanh}


class CharacterCNN(nn.Module):
    """y = W_p highway(... [f(max_i conv_1(E c)_i); ...; f(max_i conv_n(E c)_i)]) + b_p (Kim et al. 2016; ELMo).

    conv_k has `width` characters and `n` filters, filters = [(width, n), ...]; the maximum is over all places of the
    word, its padding included, as in ELMo. f is relu or tanh.
    """

    def __init__(
        self,
        n_characters: int,
        d_character: int,
        filters: Sequence[tuple[int, int]],
        n_highway: int,
        d_model: int,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(n_characters, d_character).uniform_(-1.0, 1.0))  # E
        self.convolutions = nn.ModuleList(nn.Conv1d(d_character, n, width) for width, n in filters)
        self.d_filters = sum(n for _, n in filters)
        self.highways = nn.ModuleList(Highway(self.d_filters) for _ in range(n_highway))
        self.project = nn.Linear(self.d_filters, d_model)  # W_p, b_p
        self.activation = ACTIVATIONS[activation]

    def forward(self, characters: Int[Tensor, "W C"]) -> Float[Tensor, "W D"]:
        """Vectors of W words of C characters each."""
        x = functional.embedding(characters, self.embedding).transpose(1, 2)  # (W, E, C)
        found = [self.activation(convolution(x).amax(dim=-1)) for convolution in self.convolutions]  # (W, n) each
        y = torch.cat(found, dim=-1)
        for highway in self.highways:
            y = highway(y)
        return self.project(y)  # type: ignore[no-any-return]

    def flops(self, n_characters: int) -> int:
        """Forward cost of a word of so many characters, padding included: twice the multiply-adds."""
        seen = 0
        for layer in self.convolutions:
            assert isinstance(layer, nn.Conv1d)
            width = layer.kernel_size[0]
            seen += 2 * layer.in_channels * layer.out_channels * width * (n_characters - width + 1)
        highways = sum(layer.flops() for layer in self.highways if isinstance(layer, Highway))
        return seen + highways + 2 * self.project.in_features * self.project.out_features
