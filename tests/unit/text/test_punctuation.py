from __future__ import annotations

import pytest

from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

TEXT = "The cat's hat, don't!\nA (dog) -- sat; the dog.\n\n"


def learn(punctuation: str, lowercase: bool = True) -> Tokenizer:
    config = TokenizerConfig(kind="word", vocab_size=None, lowercase=lowercase, punctuation=punctuation)
    return train_tokenizer(config, [TEXT])


def test_words_are_parted_from_their_punctuation_and_marks_kept_or_dropped() -> None:
    assert (
        learn("attached").decode(learn("attached").encode(TEXT))
        == "the cat's hat, don't!\na (dog) -- sat; the dog.\n\n"
    )
    assert (
        learn("apart").decode(learn("apart").encode(TEXT))
        == "the cat's hat , don't !\na ( dog ) - - sat ; the dog .\n\n"
    )
    assert learn("dropped").decode(learn("dropped").encode(TEXT)) == "the cat's hat don't\na dog sat the dog\n\n"


@pytest.mark.parametrize("punctuation", ["apart", "dropped"])
def test_pieces_have_the_ids_that_the_library_gives_the_whole(punctuation: str) -> None:
    tokenizer = learn(punctuation)
    texts = [TEXT, "«Où?» cafe\u0301 3.5 ... x_y ’tis it’s", "end", "???", ""]
    for text in texts:
        assert tokenizer.encode(text).tolist() == tokenizer.hf.encode(text, add_special_tokens=False).ids
    whole = tokenizer.encode_documents([(text, True) for text in texts]).tolist()
    each = [i for text in texts for i in [*tokenizer.encode(text).tolist(), *([] if text.endswith("\n") else [0])]]
    assert whole == each


def test_a_saved_tokenizer_parts_words_as_before(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tokenizer = learn("dropped")
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert (again.kind, again.hash) == ("word", tokenizer.hash)
    assert again.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()


def test_words_alone_have_a_punctuation() -> None:
    with pytest.raises(RegardError, match="punctuation dropped is for kind word, and bpe reads every character"):
        TokenizerConfig(kind="bpe", punctuation="dropped")
