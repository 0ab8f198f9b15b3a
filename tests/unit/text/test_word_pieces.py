"""Which token is a piece of which word: of a text, and of tokens that a model wrote."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.word_pieces import words_of_ids, words_of_tokens

TEXTS = ["the red house sleeps", "a café and a bird"]


def tokenizer_of(kind: str) -> Tokenizer:
    size = {"bpe": 270, "wordpiece": 40}.get(kind)
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=size), TEXTS)


def test_tokens_of_a_text_are_told_their_words() -> None:
    assert words_of_tokens(tokenizer_of("word"), "the  red house") == [0, 1, 2]
    assert words_of_tokens(tokenizer_of("char"), "a red") == [0, None, 1, 1, 1]
    bpe = tokenizer_of("bpe")
    found = words_of_tokens(bpe, "the blorp sleeps")
    assert len(found) == len(bpe.encode("the blorp sleeps")) > 3
    assert list(dict.fromkeys(number for number in found if number is not None)) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["word", "wordpiece", "char", "byte", "bpe"])
def test_tokens_that_were_written_are_joined_to_words(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    words, numbers = words_of_ids(tokenizer, tokenizer.encode("the café sleeps").tolist())
    assert words == ["the", "café", "sleeps"]
    assert list(dict.fromkeys(n for n in numbers if n is not None)) == [0, 1, 2]
    assert len(numbers) == len(tokenizer.encode("the café sleeps"))


def test_the_bytes_of_one_character_belong_to_its_word() -> None:
    byte = tokenizer_of("byte")
    ids = byte.encode("à é b").tolist()
    assert words_of_ids(byte, ids) == (["à", "é", "b"], [0, 0, None, 1, 1, None, 2])
    assert words_of_ids(byte, ids[:-3])[1] == [0, 0, None, 1]  # cut inside of é, which is no less a word
    assert words_of_ids(byte, []) == ([], [])
    assert words_of_ids(byte, byte.encode("  ").tolist()) == ([], [None, None])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 256), max_size=12))
def test_the_pieces_of_every_word_spell_it_whatever_bytes_are_written(ids: list[int]) -> None:
    byte = tokenizer_of("byte")
    words, numbers = words_of_ids(byte, ids)
    assert words == byte.decode(ids).split()
    for number, word in enumerate(words):
        pieces = [byte.token_bytes(token) for token, n in zip(ids, numbers, strict=True) if n == number]
        assert b"".join(pieces).decode("utf-8", "replace").strip() == word
