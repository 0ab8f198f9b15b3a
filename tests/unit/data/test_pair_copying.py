"""Words of a source that the target's vocabulary lacks."""

import pytest

from regard.data.pair_copying import CopiedWords
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer


def words(text: str, **settings: object) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="word", vocab_size=None, **settings), [text])


def test_unknown_words_are_numbered_as_they_appear_and_named_in_the_target() -> None:
    copied = CopiedWords(words("the cat"))  # <eos> 0, <unk> 1, cat 2, the 3
    ids, unknown = copied.number_source("the wug and the cat and a wug")
    assert ids.tolist() == [3, 4, 5, 3, 2, 5, 6, 4]
    assert unknown == ["wug", "and", "a"]
    assert copied.number_target("a blick the wug", unknown).tolist() == [6, 1, 3, 4]


def test_every_source_begins_anew() -> None:
    copied = CopiedWords(words("the cat"))
    assert copied.number_source("wug")[0].tolist() == [4]
    assert copied.number_source("blick")[0].tolist() == [4]


def test_case_is_folded_as_the_target_folds_it() -> None:
    copied = CopiedWords(words("the cat", lowercase=True))
    ids, unknown = copied.number_source("The Wug wug")
    assert ids.tolist() == [3, 4, 4]
    assert unknown == ["wug"]
    assert copied.number_target("WUG Cat", unknown).tolist() == [4, 2]


def test_marks_spelled_in_a_text_are_the_unknown_word() -> None:
    copied = CopiedWords(words("the cat"))
    assert copied.number_source("<eos> <unk> the")[0].tolist() == [1, 1, 3]
    assert copied.number_target("<eos> the", []).tolist() == [1, 3]


def test_only_words_can_be_copied() -> None:
    pieces = train_tokenizer(TokenizerConfig(kind="byte"), [])
    with pytest.raises(RegardError, match=r"the target tokenizer is one of 'byte'\. Set tokenizer\.kind to word"):
        CopiedWords(pieces)
    with pytest.raises(RegardError, match="the source tokenizer is one of 'byte'"):
        CopiedWords(words("a"), pieces)
