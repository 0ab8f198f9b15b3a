"""Words as characters, numbered as ELMo numbers them (Peters et al. 2018).

A word is its UTF-8 bytes between a mark for its beginning and one for its end, filled up to a fixed length:

    dog  ->  <w> d o g </w> pad pad ...

The ends of a sentence are words of one character of their own. Every number is one higher than in the original
program, which does so too when a model is used: 0 is left for places where there is no word at all.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
N_CHARACTERS = 262
"""0, the 256 bytes, and the five marks."""
SHORTEST = 3
"""A word of one byte between its two marks."""

Spelling = NDArray[np.int16]


def spell_bytes(characters: Iterable[int], max_characters: int) -> Spelling:
    """A word of numbered characters, marked and filled up; what is too long is cut off before the mark of its end.

    >>> spell_bytes([101], 5).tolist()
    [259, 101, 260, 261, 261]
    """
    kept = list(characters)[: max_characters - 2]
    row = np.full(max_characters, PADDING, dtype=np.int16)
    row[: len(kept) + 2] = [BEGIN_WORD, *kept, END_WORD]
    return row


def spell_word(word: str, max_characters: int) -> Spelling:
    """A word by its bytes.

    >>> spell_word("é!", 7).tolist()
    [259, 196, 170, 34, 260, 261, 261]
    """
    return spell_bytes((byte + 1 for byte in word.encode()), max_characters)


def spell_sentence_ends(max_characters: int) -> NDArray[np.int16]:
    """The begin of a sentence, <S>, and its end, </S>, as two rows."""
    return np.stack([spell_bytes([mark], max_characters) for mark in (BEGIN_SENTENCE, END_SENTENCE)])


def spell_words(words: Iterable[str], max_characters: int) -> NDArray[np.int16]:
    """One row a word."""
    rows = [spell_word(word, max_characters) for word in words]
    return np.stack(rows) if rows else np.zeros((0, max_characters), dtype=np.int16)
