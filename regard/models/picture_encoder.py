"""Picture encoders: pixels in, a vector for every place of a grid out, for a decoder to look at (Xu et al. 2015)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.layers.patches import GridPositions, cut_patches
from regard.layers.picture_convolution import N_GROUPS, PictureConvolution, ResidualBlock
from regard.layers.taps import Taps, keep
from regard.mixers.config import TransformerConfig
from regard.mixers.transformer_encoder import TransformerEncoder, initialise_xavier
from regard.models.captioner_config import CaptionerConfig
from regard.models.efficientnet_lite import D_HEAD, EfficientNetLite0
from regard.models.source import Source

Grid = tuple[int, int]
"""Rows and columns of what comes out: state s is of row s // columns and column s % columns."""


class Projection(nn.Module):
    """s = dropout(norm(W x + b) + R_i + Q_j): what a network saw at row i and column j, and where that is.

    The norm gives every place the same length, so that R and Q weigh as much in a picture of strong contrast as in a
    faint one.
    """

    def __init__(self, d_in: int, d_model: int, grid: Grid, p_dropout: float) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(d_in, d_model), nn.LayerNorm(d_model)  # W, b
        self.positions = GridPositions(grid, d_model)  # R, Q
        self.dropout = nn.Dropout(p_dropout)

    def forward(self, x: Float[Tensor, "B C h w"], taps: Taps | None = None) -> Float[Tensor, "B S D"]:
        y = self.norm(self.linear(x.flatten(2).transpose(1, 2)))  # (B, C, h w) -> (B, S, D)
        s: Tensor = self.dropout(self.positions(y, taps))
        return s

    def flops(self, grid: Grid) -> int:
        return 2 * self.linear.weight.numel() * grid[0] * grid[1]


class ConvolutionPictures(nn.Module):
    """x = 2 p - 1 of pixels p; a convolution that halves, then residual blocks, of which the first of each size halves.

    Each halving but the first doubles the channels. Windows are even where they halve: a place's lie around its middle.
    """

    def __init__(self, config: CaptionerConfig, size: int) -> None:
        super().__init__()
        self.d_model, self.size = config.d_model, size
        widths = [config.d_first * 2**index for index in range(config.n_halvings)]
        self.stem = PictureConvolution(3, widths[0], 4, stride=2)
        blocks = [ResidualBlock(widths[0], widths[0]) for _ in range(config.n_encoder_layers)]
        for d_in, d_out in pairwise(widths):
            blocks.append(ResidualBlock(d_in, d_out, stride=2))
            blocks.extend(ResidualBlock(d_out, d_out) for _ in range(config.n_encoder_layers - 1))
        self.blocks: Sequence[ResidualBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.GroupNorm(N_GROUPS, widths[-1])
        self._flops, self.grid = self._cost()
        self.projection = Projection(widths[-1], config.d_model, self.grid, config.p_picture_dropout)

    def forward(self, pictures: Float[Tensor, "B 3 size size"], taps: Taps | None = None) -> Float[Tensor, "B S D"]:
        check_size(pictures, self.size)
        x = self.stem(2 * pictures - 1)
        for block in self.blocks:
            x = block(x)
        return keep(taps, "states", self.projection(self.norm(x).relu(), taps))

    def flops_per_picture(self) -> int:
        return self._flops + self.projection.flops(self.grid)

    def _cost(self) -> tuple[int, Grid]:
        whole = (self.size, self.size)
        flops, grid = self.stem.flops(whole), self.stem.size_after(whole)
        for block in self.blocks:
            flops, grid = flops + block.flops(grid), block.size_after(grid)
        return flops, grid


class PatchPictures(nn.Module):
    """s = Transformer(W x_{ij} + b + R_i + Q_j),  x_{ij} = 2 p - 1 of the pixels p of patch i, j.

    The vision Transformer (Dosovitskiy et al. 2021). Departures: there is no class token, since a decoder looks at all
    patches, and places are told by row and column.
    """

    def __init__(self, config: CaptionerConfig, size: int) -> None:
        super().__init__()
        self.d_model, self.size, self.patch = config.d_model, size, config.patch
        self.grid: Grid = (size // config.patch, size // config.patch)
        n_places = self.grid[0] * self.grid[1]
        self.embed = nn.Linear(3 * config.patch**2, config.d_model)  # W, b
        self.positions = GridPositions(self.grid, config.d_model)  # R, Q
        self.transformer = TransformerEncoder(
            TransformerConfig(
                d_model=config.d_model,
                n_layers=config.n_encoder_layers,
                n_heads=config.n_heads,
                max_context=n_places,
                positions="none",
                p_dropout=config.p_picture_dropout,
            )
        )
        initialise_xavier(self)

    def forward(self, pictures: Float[Tensor, "B 3 size size"], taps: Taps | None = None) -> Float[Tensor, "B S D"]:
        check_size(pictures, self.size)
        x = self.positions(self.embed(cut_patches(2 * pictures - 1, self.patch)), taps)  # (B, S, D)
        states, _ = self.transformer(x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device), taps)
        return keep(taps, "states", states)

    def flops_per_picture(self) -> int:
        n_places = self.grid[0] * self.grid[1]
        return n_places * 2 * self.embed.weight.numel() + self.transformer.flops(n_places)


class EfficientNetPictures(nn.Module):
    """s = projection(EfficientNet-Lite0(p)) of pixels p.

    Frozen, the network gives a picture the same features every time: `features` computes them once, and
    `states` goes on from there. Its weights are given by `regard.weights.efficientnet_lite.load_published`, and are
    saved with the model that it is a part of.
    """

    def __init__(self, config: CaptionerConfig, size: int) -> None:
        super().__init__()
        self.d_model, self.size, self.is_frozen = config.d_model, size, config.is_frozen
        self.network = EfficientNetLite0()
        self.network.requires_grad_(not config.is_frozen)
        self._flops, self.grid = self.network.cost((size, size))
        self.projection = Projection(D_HEAD, config.d_model, self.grid, config.p_picture_dropout)

    def forward(self, pictures: Float[Tensor, "B 3 size size"], taps: Taps | None = None) -> Float[Tensor, "B S D"]:
        return self.states(self.features(pictures), taps)

    def features(self, pictures: Float[Tensor, "B 3 size size"]) -> Float[Tensor, "B 320 h w"]:
        """What the trunk sees: nearly all of the work, and a quarter of the numbers that the head makes of it."""
        check_size(pictures, self.size)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            return self.network.trunk(pictures)

    def states(self, features: Float[Tensor, "B 320 h w"], taps: Taps | None = None) -> Float[Tensor, "B S D"]:
        return keep(taps, "states", self.projection(functional.relu6(self.network.head(features)), taps))

    def flops_per_picture(self) -> int:
        return self._flops + self.projection.flops(self.grid)


def picture_encoder(config: CaptionerConfig, size: int) -> ConvolutionPictures | PatchPictures | EfficientNetPictures:
    """The encoder that a config names, for pictures of `size` by `size` pixels, with new weights."""
    config.check_size(size)
    if config.encoder == "convolution":
        return ConvolutionPictures(config, size)
    return PatchPictures(config, size) if config.encoder == "patches" else EfficientNetPictures(config, size)


def source_of(states: Float[Tensor, "B S D"]) -> Source:
    """Every place of a picture is there to be looked at."""
    return Source(states, torch.ones(states.shape[:2], dtype=torch.bool, device=states.device))


def unit_range(pictures: UInt8[Tensor, "*batch 3 h w"], like: Tensor) -> Float[Tensor, "*batch 3 h w"]:
    """Bytes as numbers in [0, 1], of the type and on the device of `like`."""
    return pictures.to(like.device).to(like.dtype) / 255


def check_size(pictures: Tensor, size: int) -> None:
    if pictures.shape[-2:] != (size, size):
        raise RegardError(
            f"The encoder takes pictures of {size} x {size} pixels and was given {pictures.shape[-2]} x "
            f"{pictures.shape[-1]}. Make the size of the encoder and that of the data the same."
        )
