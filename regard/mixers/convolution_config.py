"""The settings of the convolution. This file imports no torch, so that configs are read and checked at once."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.mixers.config import DROPOUT, TIED
from regard.settings import Settings, setting

MAX_SEEN = 2**20  # every layer keeps the vectors it can still see


@dataclass(frozen=True, kw_only=True)
class ConvolutionConfig(Settings):
    """Causal convolutions with gates, stacked."""

    d_model: int = setting(128, "width of an embedding", low=1)
    n_layers: int = setting(6, "convolutions, one above the other", low=1)
    n_window: int = setting(3, "vectors that one convolution sees", low=1)
    dilation_growth: int = setting(
        2,
        "a layer's vectors lie this many times further apart than those of the layer below; 1: all are neighbours",
        low=1,
    )
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)

    def check(self) -> None:
        if self.n_seen > MAX_SEEN:
            raise RegardError(
                f"n_layers {self.n_layers}, n_window {self.n_window} and dilation_growth {self.dilation_growth} reach "
                f"back {self.n_seen:,} tokens; at most {MAX_SEEN:,} are allowed. Lower one of them."
            )

    @property
    def dilations(self) -> tuple[int, ...]:
        """How far apart the vectors lie that each layer sees.

        >>> ConvolutionConfig(n_layers=4, dilation_growth=2).dilations
        (1, 2, 4, 8)
        """
        return tuple(self.dilation_growth**layer for layer in range(self.n_layers))

    @property
    def n_seen(self) -> int:
        """How many tokens, the newest among them, a prediction can depend on.

        >>> ConvolutionConfig(n_layers=4, n_window=3, dilation_growth=1).n_seen
        9
        >>> ConvolutionConfig(n_layers=4, n_window=3, dilation_growth=2).n_seen
        31
        """
        return 1 + (self.n_window - 1) * sum(self.dilations)
