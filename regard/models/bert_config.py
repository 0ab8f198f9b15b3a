"""BERT's settings and its sizes. Importing this file does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from regard.errors import RegardError
from regard.mixers.config import ACTIVATIONS, TransformerConfig, check_heads
from regard.settings import Settings, setting

SIZES: dict[str, tuple[int, int, int]] = {
    "tiny": (2, 128, 2),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
"""Layers, width and heads: base and large (Devlin et al. 2019) have 110M and 340M parameters with BERT's vocabulary;
small and tiny are those of Turc et al. 2019, 29M and 4M."""
FAMILIES = ("bert", "distilbert", "roberta")


@dataclass(frozen=True, kw_only=True)
class BertConfig(Settings):
    """BERT (Devlin et al. 2019). A width, depth or number of heads that is given wins over the size's."""

    size: str = setting("base", "what the four widths below are where they are null", choices=tuple(SIZES))
    d_model: int | None = setting(None, "width of an embedding; null: the size's", low=1)
    n_layers: int | None = setting(None, "blocks; null: the size's", low=1)
    n_heads: int | None = setting(None, "attention heads; must divide d_model; null: the size's", low=1)
    d_ff: int | None = setting(None, "width of the feed-forward layers; null: four times d_model", low=1)
    max_context: int = setting(512, "tokens read at most, marks included", low=4)
    activation: str = setting("gelu_erf", "between the feed-forward layers; gelu_erf is BERT's", choices=ACTIVATIONS)
    epsilon: float = setting(1e-12, "added to the variance in layer norm", low=0.0)
    p_dropout: float = setting(0.1, "dropout between layers, and of attention weights", low=0.0, high=0.95)
    family: str = setting(
        "bert",
        "bert; roberta has no segments to tell apart and two rows of positions that are not used, distilbert no "
        "segments",
        choices=FAMILIES,
    )
    has_pooler: bool = setting(True, "a layer above the first token, which next-sentence prediction reads")
    has_masked_head: bool = setting(True, "the head that fills masked places")
    has_next_head: bool = setting(True, "the head that tells whether a text follows another")
    n_rows: int | None = setting(
        None, "rows of the embedding; null: the vocabulary's. Rows beyond it stand for no token", low=1
    )

    def check(self) -> None:
        widths = self.widths()
        check_heads(widths["d_model"], widths["n_heads"])
        if self.has_next_head and not self.has_pooler:
            raise RegardError("has_next_head needs has_pooler: it reads what the pooler gives. Set both, or neither.")

    def fill_in(self) -> Self:
        return self.replace(**self.widths())

    @property
    def n_segments(self) -> int:
        """How many kinds of segments there are; 0: the model knows none."""
        return {"bert": 2, "distilbert": 0, "roberta": 1}[self.family]

    @property
    def n_unused_positions(self) -> int:
        """Rows of positions before the first that is read: RoBERTa counts from the number of its padding on."""
        return 2 if self.family == "roberta" else 0

    def transformer(self) -> TransformerConfig:
        """The blocks it is made of."""
        names = ("max_context", "activation", "p_dropout")
        same = {name: getattr(self, name) for name in names}
        return TransformerConfig.from_dict({"norm": "post", "positions": "learned", **self.widths(), **same})

    def widths(self) -> dict[str, int]:
        n_layers, d_model, n_heads = SIZES[self.size]
        d_model = self.d_model or d_model
        return {
            "d_model": d_model,
            "n_layers": self.n_layers or n_layers,
            "n_heads": self.n_heads or n_heads,
            "d_ff": self.d_ff or 4 * d_model,
        }
