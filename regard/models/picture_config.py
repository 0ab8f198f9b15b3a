"""The settings of every picture encoder. This file imports no torch, so that configs are read and checked at once."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.mixers.config import check_heads
from regard.settings import Settings, setting

D_MODEL = "width of what the decoder looks at, one vector for each place of the grid"
DROPOUT = "share of the encoder's output dropped while training"
N_GROUPS = 8


@dataclass(frozen=True, kw_only=True)
class ConvolutionPictureConfig(Settings):
    """A small residual network of our own, trained with the decoder."""

    d_model: int = setting(256, D_MODEL, low=1)
    size: int = setting(160, "side of the pictures in pixels", low=8, high=1024)
    d_first: int = setting(32, "channels after the first convolution; each halving doubles them", low=8)
    n_halvings: int = setting(
        4, "how often the sides are halved: 160 pixels and 4 make a grid of 10 by 10", low=1, high=6
    )
    n_layers: int = setting(1, "residual blocks at each size", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)

    def check(self) -> None:
        if self.d_first % N_GROUPS:
            raise RegardError(
                f"d_first must be a multiple of {N_GROUPS}, in which channels are normed, not {self.d_first}."
            )


@dataclass(frozen=True, kw_only=True)
class PatchPictureConfig(Settings):
    """Patches of pixels into a Transformer (Dosovitskiy et al. 2021)."""

    d_model: int = setting(256, D_MODEL, low=1)
    size: int = setting(160, "side of the pictures in pixels", low=8, high=1024)
    patch: int = setting(16, "side of a patch in pixels: 160 and 16 make a grid of 10 by 10", low=1)
    n_layers: int = setting(4, "Transformer blocks", low=1)
    n_heads: int = setting(4, "attention heads", low=1)
    d_ff: int | None = setting(None, "width of the feed-forward layers; null: 4 times d_model", low=1)
    p_dropout: float = setting(0.0, "share of activations dropped while training", low=0.0, high=0.95)

    def check(self) -> None:
        if self.size % self.patch:
            raise RegardError(
                f"size {self.size} is no multiple of patch {self.patch}. Make size "
                f"{max(1, round(self.size / self.patch)) * self.patch}, or change patch."
            )
        check_heads(self.d_model, self.n_heads)


@dataclass(frozen=True, kw_only=True)
class EfficientNetPictureConfig(Settings):
    """EfficientNet-Lite0, which has learned to see on ImageNet (Tan & Le 2019)."""

    d_model: int = setting(256, D_MODEL, low=1)
    size: int = setting(
        224, "side of the pictures in pixels: 224, as it was trained, makes a grid of 7 by 7", low=32, high=1024
    )
    is_frozen: bool = setting(True, "what it has learned stays as it is; only the layer on top of it is trained")
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)


PICTURE_CONFIGS: dict[str, type[Settings]] = {
    "convolution": ConvolutionPictureConfig,
    "patches": PatchPictureConfig,
    "efficientnet-lite0": EfficientNetPictureConfig,
}
