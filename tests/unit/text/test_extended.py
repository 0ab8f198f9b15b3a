"""Words of one text that the vocabulary does not have."""

import pytest
from interleaving import Interrupted

from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.extended import ExtendedVocabulary
from regard.text.learning import train_tokenizer


def words(**settings: object) -> ExtendedVocabulary:
    config = TokenizerConfig(kind="word", vocab_size=None, **settings)
    return ExtendedVocabulary(train_tokenizer(config, ["the cat sat\n", "the dog sat\n"]))


def test_unknown_words_are_numbered_as_they_appear_and_known_ones_keep_their_ids() -> None:
    extended = words()
    n = extended.tokenizer.vocab_size
    text = "a wug sat\nthe wug saw a cat"
    ids = extended.encode(text)
    known = extended.tokenizer.encode(text)
    assert ids.tolist() == [n, n + 1, known[2], 0, known[4], n + 1, n + 2, n, known[8]]
    assert extended.vocab_size == n + 3
    assert extended.decode(ids) == text


def test_offsets_are_the_tokenizers_own() -> None:
    extended = words()
    text = "  the   wug\n\nsat"
    assert extended.encode_with_offsets(text)[1] == extended.tokenizer.encode_with_offsets(text)[1]


def test_a_text_that_spells_unk_means_the_unknown_word() -> None:
    extended = words()
    assert extended.encode("<unk> wug <unk>").tolist() == [1, extended.tokenizer.vocab_size, 1]


def test_case_is_folded_as_the_tokenizer_folds_it() -> None:
    extended = words(lowercase=True)
    n = extended.tokenizer.vocab_size
    assert extended.encode("Wug WUG The").tolist() == [n, n, extended.tokenizer.id_of("the")]
    assert extended.token_text(n) == "wug"


def test_words_that_two_threads_meet_at_once_have_ids_of_their_own() -> None:
    extended = words()
    count = Interrupted(dict.__len__, lambda: extended.encode("blick"))

    class Met(dict[str, int]):
        def __len__(self) -> int:
            return int(count(self))

    extended.words = Met()
    ids = [*extended.encode("wug").tolist(), *count.result().tolist()]
    n = extended.tokenizer.vocab_size
    assert sorted(ids) == [n, n + 1]
    assert [extended.token_text(i) for i in ids] == ["wug", "blick"]


def test_a_decoder_goes_on_after_a_prompt() -> None:
    extended = words()
    ids = extended.encode("the wug")
    assert extended.stream_decoder(after=ids).push(int(ids[1])) == " wug"


def test_no_text_has_no_ids() -> None:
    assert words().encode("").tolist() == []


def test_tokenizers_without_unknown_words_are_refused() -> None:
    with pytest.raises(
        RegardError,
        match=r"Only a word tokenizer has unknown words to be told apart, not one of 'char'.*tokenizer.kind word",
    ):
        ExtendedVocabulary(train_tokenizer(TokenizerConfig(kind="char"), ["the cat"]))
