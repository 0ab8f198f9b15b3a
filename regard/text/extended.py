"""Ids for the words of one text that the vocabulary does not have, so that a model that copies can name them.

    known words keep their ids;   the k-th unknown word of this text, in order of appearance, is V + k

(See et al. 2017). The ids mean something in this text alone: they are given out as it is read, and never saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock, RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.text.decoding import StreamDecoder
from regard.text.tokenizer import UNK, Ids, Tokenizer

_NUMBERING = Lock()
"""Held while words are numbered; one for all vocabularies, since a lock of their own could not be copied with them."""
MEETING_WORDS = RLock()
"""Held while a model meets words; one for all models, since a lock of their own could not be copied with them."""


class ExtendedVocabulary:
    """A word tokenizer that has no unknown words; it learns them as it meets them. Several threads may use one.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the cat sat\\n", "the dog sat\\n"])
    >>> extended = ExtendedVocabulary(words)
    >>> extended.encode("the wug sat\\nthe blick\\nthe wug")
    array([3, 6, 2, 0, 3, 7, 0, 3, 6])
    >>> extended.decode([3, 7, 2])
    'the blick sat'
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        if tokenizer.kind != "word":
            raise RegardError(
                f"Only a word tokenizer has unknown words to be told apart, not one of '{tokenizer.kind}'; use it as it"
                " is, or train the run with tokenizer.kind word."
            )
        self.tokenizer, self.eos, self.marks = tokenizer, tokenizer.eos, tokenizer.marks
        self.words: dict[str, int] = {}
        """The unknown words met so far, and their ids."""

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size + len(self.words)

    def encode(self, text: str) -> NDArray[np.int64]:
        return self.encode_with_offsets(text)[0]

    def encode_with_offsets(self, text: str) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """The ids, and for each the characters [start, end) of `text` it came from."""
        known, offsets = self.tokenizer.encode_with_offsets(text)
        ids = [self._id(int(i), text[a:b]) for i, (a, b) in zip(known, offsets, strict=True)]
        return np.array(ids, dtype=np.int64), offsets

    def _id(self, known: int, spelled: str) -> int:
        if known != self.tokenizer.unk:
            return known
        normalizer = self.tokenizer.hf.normalizer
        word = spelled if normalizer is None else normalizer.normalize_str(spelled)
        if word == UNK:
            return known
        with _NUMBERING:  # no other word may come between the count and its use
            return self.words.setdefault(word, self.vocab_size)

    def list_words(self, start: int = 0) -> list[str]:
        """The unknown words met so far from the one with the id V + `start` on, in the order of their ids."""
        with _NUMBERING:
            return list(self.words)[start:]

    def id_of(self, token: str) -> int | None:
        """The id of a vocabulary entry as it is spelled in tokenizer.json."""
        return self.tokenizer.id_of(token)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        decoder = self.stream_decoder()
        return "".join([decoder.push(int(i)) for i in ids]) + decoder.flush()

    def stream_decoder(self, after: Ids | Sequence[int] | NDArray[Any] = ()) -> StreamDecoder:
        """A decoder of ids met so far, fed one at a time, as if it had been given the ids `after` already."""
        texts = [*map(self.tokenizer.token_text, range(self.tokenizer.vocab_size)), *self.list_words()]
        decoder = StreamDecoder("word", texts, None)
        for i in after:
            decoder.push(int(i))
        return decoder

    def token_text(self, token: int) -> str:
        """One word, to be shown."""
        n = self.tokenizer.vocab_size
        return self.tokenizer.token_text(token) if token < n else self.list_words(token - n)[0]
