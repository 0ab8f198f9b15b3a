"""GPT-2's settings and its four sizes. Importing this file does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from regard.mixers.config import ACTIVATIONS, TransformerConfig, check_heads
from regard.settings import Settings, setting

SIZES: dict[str, tuple[int, int, int]] = {
    "small": (12, 768, 12),
    "medium": (24, 1024, 16),
    "large": (36, 1280, 20),
    "xl": (48, 1600, 25),
}
"""Layers, width and heads (Radford et al. 2019, table 2): 124M, 355M, 774M and 1,558M parameters."""


@dataclass(frozen=True, kw_only=True)
class GPT2Config(Settings):
    """GPT-2 (Radford et al. 2019). A width, depth or number of heads that is given wins over the size's."""

    size: str = setting("small", "what the four widths below are where they are null", choices=tuple(SIZES))
    d_model: int | None = setting(None, "width of an embedding; null: the size's", low=1)
    n_layers: int | None = setting(None, "blocks; null: the size's", low=1)
    n_heads: int | None = setting(None, "attention heads; must divide d_model; null: the size's", low=1)
    d_ff: int | None = setting(None, "width of the feed-forward layers; null: four times d_model", low=1)
    max_context: int = setting(1024, "tokens seen at most", low=1)
    activation: str = setting("gelu", "between the feed-forward layers; gelu is GPT-2's", choices=ACTIVATIONS)
    epsilon: float = setting(1e-5, "added to the variance in layer norm", low=0.0)
    p_dropout: float = setting(0.1, "dropout between layers", low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, "one matrix for input and output embeddings")
    n_rows: int | None = setting(
        None, "rows of the embedding; null: the vocabulary's. Rows beyond it stand for no token", low=1
    )

    def check(self) -> None:
        widths = self._widths()
        check_heads(widths["d_model"], widths["n_heads"])

    def fill_in(self) -> Self:
        return self.replace(**self._widths())

    def transformer(self) -> TransformerConfig:
        """The blocks it is made of."""
        names = ("max_context", "activation", "p_dropout", "tie_embeddings")
        same = {name: getattr(self, name) for name in names}
        return TransformerConfig.from_dict({"norm": "pre", "positions": "learned", **self._widths(), **same})

    def _widths(self) -> dict[str, int]:
        n_layers, d_model, n_heads = SIZES[self.size]
        d_model = self.d_model or d_model
        return {
            "d_model": d_model,
            "n_layers": self.n_layers or n_layers,
            "n_heads": self.n_heads or n_heads,
            "d_ff": self.d_ff or 4 * d_model,
        }
