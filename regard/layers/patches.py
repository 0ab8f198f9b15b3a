"""A picture as a sequence: patches of pixels, and where in the picture they are."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.taps import Taps


def cut_patches(pictures: Float[Tensor, "B C h w"], side: int) -> Float[Tensor, "B S P"]:
    """The pixels of each side×side patch, in one row; patches from left to right, then down.

    Each row holds its C channels one after the other, each of them line by line.
    """
    B, C, h, w = pictures.shape
    assert h % side == w % side == 0, f"{h} x {w} pixels cannot be cut into patches of {side}"
    x = pictures.reshape(B, C, h // side, side, w // side, side)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, (h // side) * (w // side), C * side * side)


class GridPositions(nn.Module):
    """y_{i w + j} = x_{i w + j} + R_i + Q_j: a learned vector for the row i and one for the column j.

    Fewer to learn than one for each of the h w places (Dosovitskiy et al. 2021), and places in one row or one column
    start out alike, which a table for all has to find out.
    """

    def __init__(self, grid: tuple[int, int], d_model: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(grid[0], 1, d_model))  # R
        self.columns = nn.Parameter(torch.empty(1, grid[1], d_model))  # Q
        for table in (self.rows, self.columns):
            nn.init.normal_(table, std=0.02)

    def forward(self, x: Float[Tensor, "B S D"], taps: Taps | None = None) -> Float[Tensor, "B S D"]:
        places = (self.rows + self.columns).flatten(0, 1)
        return x + (places if taps is None else taps.keep("positions", places[None]))
