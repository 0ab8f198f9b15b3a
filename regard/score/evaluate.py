"""How well a model predicts a text: perplexity and bits per byte."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.models.next_token import NextToken
from regard.score.measured import Figure, Measured


class Text(Protocol):
    """A stream of token ids that knows how long its text is: what `regard.data` hands out."""

    @property
    def n_bytes(self) -> int: ...
    @property
    def n_words(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> NDArray[np.integer[Any]]: ...


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Nats summed over a text, and what the text's length is in tokens, bytes and words.

    Tokens differ between tokenizers and words between languages; bytes are the same for all, so bits per byte is what
    models are compared by.

    >>> halves = Evaluation(nats=8 * math.log(2), n_tokens=8, n_bytes=16, n_words=4)
    >>> halves.perplexity, halves.perplexity_per_word, halves.bits_per_byte
    (2.0, 4.0, 0.5)
    """

    nats: float
    n_tokens: int
    n_bytes: int
    n_words: int
    notes: tuple[str, ...] = ()
    """What has to be known to read the scores."""

    @property
    def nats_per_token(self) -> float:
        return self.nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        """e^(nats per token); infinite where the model rules the text out, or beyond what a float holds."""
        return _exp(self.nats_per_token)

    @property
    def perplexity_per_word(self) -> float:
        return _exp(self.nats / self.n_words)

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / self.n_bytes

    def to_dict(self) -> dict[str, float | None]:
        """Plain values; what is infinite is None, since JSON has no word for it."""
        values = {
            "nats": self.nats,
            "n_tokens": self.n_tokens,
            "n_bytes": self.n_bytes,
            "n_words": self.n_words,
            "nats_per_token": self.nats_per_token,
            "perplexity": self.perplexity,
            "perplexity_per_word": self.perplexity_per_word,
            "bits_per_byte": self.bits_per_byte,
        }
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def measure(self) -> Measured:
        return Measured(
            figures=(
                Figure("loss, nats a token", self.nats_per_token, 4),
                Figure("perplexity a token", self.perplexity),
                Figure("perplexity a word", self.perplexity_per_word),
                Figure("bits per byte", self.bits_per_byte, 4),
            ),
            headline="bits per byte",
            is_higher_better=False,
            counts={"tokens": self.n_tokens, "words": self.n_words, "bytes": self.n_bytes},
            notes=self.notes,
        )


def evaluate(model: NextToken, text: Text, stride: int | None = None) -> Evaluation:
    """Every token of the text given its past: by carried state, or in a window that slides by `stride`."""
    if len(text) == 0:
        raise RegardError("There is nothing to evaluate on: the text has no tokens.")
    nats = model.nats(text[0 : len(text)], stride)
    return Evaluation(
        nats=math.fsum(nats.tolist()), n_tokens=len(text), n_bytes=text.n_bytes, n_words=max(text.n_words, 1)
    )


def finite_perplexity(nats_per_token: float) -> float:
    """e^(nats per token), at most e^700: beyond that a float holds no number, and JSON has no word for it.

    >>> finite_perplexity(0.0), finite_perplexity(math.inf) == math.exp(700)
    (1.0, True)
    """
    return math.exp(min(nats_per_token, 700.0))


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf
