"""From where an encoder ends to where a recurrent decoder begins."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Bridge(nn.Module):
    """h^l = tanh(W_l e_l + b_l),   c^l = W'_l e_l + b'_l for an LSTM

    e_l is the end of the encoder's layer that stands as far below its top as l does below the decoder's. Sutskever et
    al. (2014) copy states as they are, which asks for two networks of one kind and one shape; here any encoder starts
    any decoder, and an LSTM's cell is read off the encoder's output, since fused kernels tell cells at the end of a
    padded row only.
    """

    def __init__(self, d_model: int, n_ends: int, n_layers: int, has_cell: bool) -> None:
        super().__init__()
        self.n_ends, self.n_layers, self.n_parts = n_ends, n_layers, 2 if has_cell else 1
        self.maps: Sequence[nn.Linear] = nn.ModuleList(
            nn.Linear(d_model, self.n_parts * d_model) for _ in range(n_layers)
        )  # type: ignore[assignment]
        for each in self.maps:
            nn.init.xavier_uniform_(each.weight)
            nn.init.zeros_(each.bias)

    def forward(self, ends: tuple[Float[Tensor, "B D"], ...]) -> tuple[tuple[Tensor, ...], ...]:
        """The state of every layer: (h,), or (h, c)."""
        states = []
        for index, each in enumerate(self.maps):
            end = ends[max(0, index + self.n_ends - self.n_layers)]
            # A state that goes on over many steps is kept in full precision, whatever autocast multiplied in.
            h, *cell = each(end).to(each.weight.dtype).chunk(self.n_parts, dim=-1)
            states.append((torch.tanh(h), *(c.contiguous() for c in cell)))  # cuDNN takes no other
        return tuple(states)

    def flops(self) -> int:
        return sum(2 * each.in_features * each.out_features for each in self.maps)


def mean_state(states: Float[Tensor, "B S D"], mask: Tensor) -> Float[Tensor, "B D"]:
    """The mean over the positions that are there; zero where none is."""
    n = mask.sum(dim=1, keepdim=True).clamp_min(1)
    return (states * mask[..., None]).sum(dim=1) / n.to(states.dtype)
