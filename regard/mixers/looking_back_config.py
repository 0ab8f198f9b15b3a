"""The settings of recurrent models that look back at their own past states. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.mixers.config import DROPOUT, NO_DROPOUT, TIED
from regard.settings import Settings, setting

CELLS = ("rnn", "gru", "lstm")
SCORES = ("dot", "bilinear", "mlp", "scaled-dot")
MIXES = ("fixed", "learned", "sentinel")
COPIES = ("word", "next")
P_VOCABULARY = 0.8

_EMBEDDING = "share of word types left out of a whole batch (Gal & Ghahramani 2016)"
_CELL = "the recurrent layer"
_SCORE = "how a state is matched with an earlier one: q·k, qᵀWk, w·tanh(W[q; k]) or q·k/√d"


@dataclass(frozen=True, kw_only=True)
class RecurrentAttentionConfig(Settings):
    """A recurrent network that attends to its own past states."""

    cell: str = setting("lstm", _CELL, choices=CELLS)
    d_model: int = setting(176, "width of an embedding and of the state", low=1)
    n_layers: int = setting(2, "recurrent layers", low=1)
    score: str = setting("scaled-dot", _SCORE, choices=SCORES)
    max_memory: int = setting(128, "how many past states are looked at, at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    p_embedding: float = setting(0.0, _EMBEDDING, low=0.0, high=0.95)
    is_variational: bool = setting(
        False, "one dropout mask for all steps of a window (Gal & Ghahramani 2016), not one a step"
    )
    tie_embeddings: bool = setting(True, TIED)

    def notes(self) -> list[str]:
        return [NO_DROPOUT] if self.is_variational and not self.p_dropout else []


@dataclass(frozen=True, kw_only=True)
class PointerConfig(Settings):
    """A recurrent network that can also copy words from its past."""

    cell: str = setting("lstm", _CELL, choices=CELLS)
    d_model: int = setting(176, "width of an embedding and of the state", low=1)
    n_layers: int = setting(2, "recurrent layers", low=1)
    n_vocab: int | None = setting(
        None, "words it can predict without copying, the most frequent ones; null: all of the tokenizer's", low=2
    )
    score: str = setting("dot", _SCORE, choices=SCORES)
    max_memory: int = setting(128, "how many past positions can be copied from, at most", low=1)
    copies: str = setting("word", "what a past state stands for: the word it read, or the next one", choices=COPIES)
    mix: str = setting("learned", "how vocabulary and copies are weighed", choices=MIXES)
    p_vocabulary: float = setting(P_VOCABULARY, "the vocabulary's share where mix is fixed", low=0.01, high=0.99)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    p_embedding: float = setting(0.0, _EMBEDDING, low=0.0, high=0.95)
    is_variational: bool = setting(
        False, "one dropout mask for all steps of a window (Gal & Ghahramani 2016), not one a step"
    )
    tie_embeddings: bool = setting(True, TIED)

    def notes(self) -> list[str]:
        return [NO_DROPOUT] if self.is_variational and not self.p_dropout else []

    def check(self) -> None:
        if self.mix != "fixed" and self.p_vocabulary != P_VOCABULARY:
            raise RegardError(
                f"p_vocabulary is {self.p_vocabulary} and mix is {self.mix}, which learns the vocabulary's share. "
                "Leave out p_vocabulary, or set mix to fixed."
            )
