"""Where in a picture each word of a caption looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

Weights = NDArray[np.floating]


@dataclass(frozen=True)
class PictureAttention:
    """A picture (H, W, 3) of bytes, the words said of it, and each word's weights over the grid, (T, h, w)."""

    picture: NDArray[np.uint8]
    words: tuple[str, ...]
    weights: Weights
    name: str = ""
    references: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.weights.ndim != 3 or len(self.words) != len(self.weights) or not self.words:
            raise RegardError(
                f"{len(self.words)} words were given with weights of shape {self.weights.shape}. Give one word or "
                "more, and for each of them a row of weights over the grid: (words, rows, columns)."
            )
        if not np.isfinite(self.weights).all() or (self.weights < 0).any() or (self.weights.sum((1, 2)) <= 0).any():
            raise RegardError(
                "The weights hold numbers below 0 or none above it. Give the attention after its softmax."
            )

    @classmethod
    def over(
        cls,
        grid: tuple[int, int],
        picture: NDArray[np.uint8],
        words: Sequence[str],
        weights: Weights,
        name: str = "",
        references: Sequence[str] = (),
    ) -> PictureAttention:
        """Build it from weights (T, S) over the places of a grid, row after row."""
        if weights.ndim != 2 or weights.shape[1] != grid[0] * grid[1]:
            raise RegardError(
                f"Weights of shape {weights.shape} do not cover a grid of {grid[0]} x {grid[1]}. Give (words, "
                f"{grid[0] * grid[1]}), the mean over heads where there are several."
            )
        return cls(picture, tuple(words), weights.reshape(-1, *grid), name, tuple(references))

    @property
    def strongest(self) -> list[float]:
        """The largest share of a word's attention that lies on one place."""
        return [float(w.max() / w.sum()) for w in self.weights]

    @property
    def even(self) -> float:
        """The share of each place under even attention."""
        return 1.0 / int(self.weights[0].size)
