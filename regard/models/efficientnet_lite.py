"""EfficientNet-Lite0: a network that was searched for under a budget of operations (Tan & Le 2019).

The lite form, published in 2020, has ReLU6 for swish and no squeeze-and-excitation. As a part of larger models it only
reads: its batch norms are folded into the convolutions, so that it has no state and no mode.
"""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.picture_convolution import InvertedResidual, PictureConvolution


class Stage(NamedTuple):
    """So many inverted residuals in a row; the first takes the stride and the new width."""

    n_blocks: int
    n_window: int
    stride: int
    expansion: int
    d_out: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
D_STEM, D_TRUNK, D_HEAD = 32, 320, 1280


class EfficientNetLite0(nn.Module):
    """x = (255 p - 127) / 128 of pixels p in [0, 1];  trunk = blocks(φ(stem * x)),  head = φ(W * trunk),  φ = ReLU6.

    Sides of 224 pixels become 7. The trunk has 320 channels and nearly all of the work; the head spreads them out to
    1280, from which ImageNet's classes were told apart by one linear layer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = PictureConvolution(3, D_STEM, 3, stride=2)
        blocks, d_in = [], D_STEM
        for stage in STAGES:
            for index in range(stage.n_blocks):
                stride = stage.stride if index == 0 else 1
                blocks.append(InvertedResidual(d_in, stage.d_out, stage.n_window, stride, stage.expansion))
                d_in = stage.d_out
        self.blocks = nn.ModuleList(blocks)
        self.head = PictureConvolution(D_TRUNK, D_HEAD, 1)  # W

    def trunk(self, pictures: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B 320 h w"]:
        x = functional.relu6(self.stem((255 * pictures - 127) / 128))
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, pictures: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B 1280 h w"]:
        return functional.relu6(self.head(self.trunk(pictures)))

    def cost(self, size: tuple[int, int]) -> tuple[int, tuple[int, int]]:
        """FLOPs of the trunk and the head for one picture, and the grid that comes out."""
        flops, size = self.stem.flops(size), self.stem.size_after(size)
        for block in self.blocks:
            assert isinstance(block, InvertedResidual)
            flops, size = flops + block.flops(size), block.size_after(size)
        return flops + self.head.flops(size), size
