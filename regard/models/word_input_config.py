"""The settings of word vectors and characters under an encoder, and of what may lie above a pre-trained one.

Importing this file does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.mixers.config import CELLS, DROPOUT
from regard.settings import Settings, setting
from regard.text.spelling import SHORTEST

_COUNTED = "null: counted when training begins"


@dataclass(frozen=True, kw_only=True)
class WordsConfig(Settings):
    """A word as a vector of its own, which may begin as one of train.vectors, beside what its characters say."""

    d_word: int | None = setting(None, "width of a word's vector; null: that of train.vectors, else 100", low=1)
    lowercase: bool = setting(True, "words that differ in case alone share a vector; characters keep their case")
    min_count: int = setting(
        2, "a word that the training texts have less often, and that has no vector, is read as an unknown one", low=1
    )
    max_fixed: int | None = setting(
        400_000,
        "how many words of train.vectors that the training texts do not have are kept, the first of the file; their "
        "vectors stay as they are; null: all",
        low=0,
    )
    d_character: int = setting(25, "width of a character", low=1)
    filters: tuple[int, ...] = setting(
        (0, 0, 50), "convolutions one character wide, two wide, three wide, ...; []: characters are not read", low=0
    )
    max_characters: int = setting(25, "bytes of a word that are read, with the marks at its ends", low=SHORTEST)
    n_learned: int | None = setting(None, f"words whose vectors are learned; {_COUNTED}", low=2)
    n_fixed: int | None = setting(None, f"words whose vectors stay as they are; {_COUNTED}", low=0)
    n_bytes: int | None = setting(None, f"bytes of all words, one a line; {_COUNTED}", low=0)

    def check(self) -> None:
        if len(self.filters) > self.max_characters:
            raise RegardError(
                f"filters has {len(self.filters)} numbers, and a word {self.max_characters} characters "
                "(max_characters): leave out the widest."
            )

    def take_open(self, begun: Settings) -> WordsConfig:
        if not isinstance(begun, WordsConfig):
            return self
        names = ("d_word", "n_learned", "n_fixed", "n_bytes")
        return self.replace(**{name: getattr(begun, name) for name in names if getattr(self, name) is None})


@dataclass(frozen=True, kw_only=True)
class MixerConfig(Settings):
    """A recurrent network, both ways, between a pre-trained encoder and the head (Peters et al. 2018)."""

    cell: str = setting("lstm", "the recurrent layer", choices=CELLS)
    d_model: int = setting(200, "width of its states, both directions together", low=2)
    n_layers: int = setting(1, "recurrent layers", low=1)
    p_dropout: float = setting(0.5, DROPOUT, low=0.0, high=0.95)

    def check(self) -> None:
        if self.d_model % 2:
            raise RegardError(
                f"d_model is {self.d_model}, and each direction takes half of it. Make it {self.d_model + 1}."
            )
