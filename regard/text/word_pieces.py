"""Tokens as pieces of words: what stands between white space."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer


def words_of_tokens(tokenizer: Tokenizer | ExtendedVocabulary, text: str) -> list[int | None]:
    """For each token of a text the number of the word, between spaces, that it is a piece of; None: of none."""
    word_at = _word_at(text)
    spans = tokenizer.encode_with_offsets(text)[1]
    return [next((w for w in word_at[start:end] if w is not None), None) for start, end in spans]


def words_of_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[list[str], list[int | None]]:
    """The words that tokens spell, and for each token the number of the word that it is a piece of; None: of none.

    A model may write a word in other pieces than `encode` would cut it into, so the text alone does not tell.
    """
    decoder, ends, text = tokenizer.stream_decoder(), [0], ""
    for token in ids:
        text += decoder.push(token)
        ends.append(len(text))
    text += decoder.flush()
    word_at = _word_at(text)
    numbers = []
    for token, start, end in zip(ids, ends, ends[1:], strict=False):
        number = next((w for w in word_at[start:end] if w is not None), None)
        if number is None and end < len(text) and tokenizer.token_text(token).strip():
            number = word_at[end]  # the first bytes of a character that comes with a later token
        numbers.append(number)
    return text.split(), numbers


def _word_at(text: str) -> list[int | None]:
    """For each character the number of its word; None for white space."""
    word_at: list[int | None] = []
    number = -1
    for i, character in enumerate(text):
        if character.isspace():
            word_at.append(None)
            continue
        number += i == 0 or text[i - 1].isspace()
        word_at.append(number)
    return word_at
