"""A tokenizer.json is a small program: what could search for hours, or take any memory, is refused before it runs."""

import json
from typing import Any

import pytest

from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import cut_long_words, train_tokenizer
from regard.text.tokenizer import Tokenizer

WORDS = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["a cat sat"])
PARTED = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None, punctuation="apart"), ["a cat, sat"])
PIECES = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=60), ["a cat sat on a mat"] * 3)


def change(tokenizer: Tokenizer, *path: Any, to: Any) -> str:
    parsed = json.loads(tokenizer.json)
    inner = parsed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return json.dumps(parsed)


def test_our_own_tokenizers_are_read_again() -> None:
    for tokenizer in (WORDS, PARTED, PIECES):
        assert Tokenizer.from_json(tokenizer.json).hash == tokenizer.hash


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (change(PARTED, "pre_tokenizer", "pattern", "Regex", to="(a+)+$"), "A pattern from elsewhere"),
        (change(WORDS, "normalizer", "normalizers", 0, "content", to="x" * 10**6), "searches texts for"),
        (change(WORDS, "model", "vocab", "cat", to=4294967295), "one of them has the number 4,294,967,295"),
        (change(WORDS, "model", "vocab", "cat", to=4), "two tokens with one id"),
        (change(WORDS, "model", "vocab", to={}), "must have a vocabulary"),
        (change(WORDS, "model", "unk_token", to="[none]"), "no '\\[none\\]' with the id 1"),
        (change(PIECES, "model", "max_input_chars_per_word", to=10**9), "at most 10,000 are read"),
        (change(PIECES, "pre_tokenizer", to={"type": "Punctuation", "behavior": "x"}), "the pre_tokenizer 'Pu"),
        ("[]", "it has no model"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)  # fmt: skip
def test_what_could_hang_or_take_any_memory_is_refused(text: str, why: str) -> None:
    with pytest.raises(RegardError, match=why):
        Tokenizer.from_json(text, "tokenizer.json")


def test_a_model_that_does_not_say_its_type_is_read_where_tokenizers_can_tell() -> None:
    """Files of early versions of `tokenizers` have none."""
    parsed = json.loads(WORDS.json)
    del parsed["model"]["type"]
    assert Tokenizer.from_json(json.dumps(parsed)).encode("a cat").tolist() == WORDS.encode("a cat").tolist()


def test_a_length_limit_in_the_file_does_not_cut_texts() -> None:
    cut = change(
        WORDS, "truncation", to={"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    )
    assert len(Tokenizer.from_json(cut).encode("a cat sat")) == 3


def test_text_without_blanks_is_learned_from_in_short_stretches() -> None:
    ordinary = ["a text of words\n" * 100, "and another one"]
    assert list(cut_long_words(ordinary)) == ordinary
    cut = list(cut_long_words(["before " + "x" * 1700 + " after"]))
    assert "".join(cut) == "before " + "x" * 1700 + " after"
    assert max(map(len, cut)) == 500
    assert sum(map(len, cut_long_words(["y" * 2**19] * 8))) == 2**20
