"""The settings of restricted self-attention. This file imports no torch: configs are read and checked at once."""

from __future__ import annotations

from dataclasses import dataclass

from regard.mixers.config import DROPOUT, POSITIONS, TIED, check_heads
from regard.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class RestrictedConfig(Settings):
    """Causal self-attention within a window, with no feed-forward layers."""

    d_model: int = setting(160, "width of an embedding", low=1)
    n_layers: int = setting(4, "attention layers", low=1)
    n_heads: int = setting(4, "attention heads; must divide d_model", low=1)
    n_window: int = setting(32, "positions that each looks at, itself among them", low=1)
    positions: str = setting("learned", "how order is told", choices=POSITIONS)
    max_context: int = setting(128, "tokens seen at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)

    def check(self) -> None:
        check_heads(self.d_model, self.n_heads)
