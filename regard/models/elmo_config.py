"""ELMo's settings. Importing this file does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.mixers.config import DROPOUT
from regard.settings import Settings, setting
from regard.text.spelling import SHORTEST

INPUTS = ("characters", "tokens")


@dataclass(frozen=True, kw_only=True)
class ElmoConfig(Settings):
    """Two LSTM language models, one each way, over words that are read by their characters (Peters et al. 2018)."""

    d_model: int = setting(128, "width of a word and of a layer's state, each way; the two are put side by side", low=1)
    d_hidden: int = setting(512, "width of the cells inside the LSTM layers; above d_model", low=2)
    n_layers: int = setting(2, "LSTM layers, each way", low=1)
    input: str = setting("characters", "what a word is read by: its characters, or a vector of its own", choices=INPUTS)
    n_vocab: int | None = setting(
        8192, "words that are predicted, the most frequent; others are read, and predicted as <unk>; null: all", low=2
    )
    d_character: int = setting(16, "width of a character", low=1)
    filters: tuple[int, ...] = setting(
        (32, 32, 64, 128), "how many convolutions are one character wide, two wide, three wide, ...", low=0
    )
    n_highway: int = setting(1, "highway layers above the convolutions", low=0)
    activation: str = setting("relu", "after the convolutions", choices=("relu", "tanh"))
    max_characters: int = setting(
        30, "bytes of a word that are read, with the marks at its ends; 50 in the original", low=SHORTEST
    )
    cell_clip: float | None = setting(None, "cells are kept within ± this, 3 in the original; null: no limit", low=0.0)
    projection_clip: float | None = setting(None, "as cell_clip, for the states", low=0.0)
    has_skips: bool = setting(True, "whether a layer above the first adds its input to its output")
    has_softmax: bool = setting(True, "whether it predicts words; published weights have lost theirs")
    p_dropout: float = setting(0.1, DROPOUT, low=0.0, high=0.95)
    p_reset: float = setting(
        0.0,
        "share of the lines of a training text that are read with no memory of the lines before, as tasks read texts",
        low=0.0,
        high=1.0,
    )

    def check(self) -> None:
        if self.d_hidden <= self.d_model:
            raise RegardError(
                f"d_hidden must be above d_model, to which the cells are projected, not {self.d_hidden} and "
                f"{self.d_model}. Set d_hidden to {4 * self.d_model}, say."
            )
        if self.input == "characters" and (not sum(self.filters) or len(self.filters) > self.max_characters):
            raise RegardError(
                f"filters must have a number above 0 and at most max_characters = {self.max_characters} numbers, not "
                f"{list(self.filters)}."
            )

    def list_filters(self) -> list[tuple[int, int]]:
        """Width and number of the convolutions."""
        return [(width, n) for width, n in enumerate(self.filters, start=1) if n]
