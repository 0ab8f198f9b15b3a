"""Words as rows of a table and by their characters."""

import numpy as np
import pytest
import torch
from interleaving import Interrupted

from regard.models import word_input
from regard.models.word_input import UpperLayers, WordInput, WordList, list_words
from regard.models.word_input_config import MixerConfig, WordsConfig
from regard.models.word_vectors import WordVectors
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

TEXTS = ["The cat saw the Dog", "the dog ran off", "The wug ran"]
VECTORS = WordVectors(["the", "cow", "dog", "off", "Anna"], np.eye(5, 3, dtype=np.float32))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [f"{text}\n" for text in TEXTS])


def build(words: WordList, tokenizer: Tokenizer, filters: tuple[int, ...] = (3, 4)) -> WordInput:
    torch.manual_seed(0)
    sizes = {"n_learned": len(words.learned), "n_fixed": len(words.fixed), "n_bytes": len(words.to_bytes())}
    made = WordInput(WordsConfig(d_word=3, filters=filters, d_character=4, max_characters=8, **sizes)).double()
    made.fixed.copy_(torch.arange(made.fixed.numel()).view_as(made.fixed))
    made.keep_words(words)
    made.hear_of(tokenizer)
    return made


def test_words_are_listed_by_how_often_they_come_and_then_those_that_have_a_vector_alone(tokenizer: Tokenizer) -> None:
    plain = list_words(TEXTS, tokenizer, WordsConfig(), None)
    assert plain == (("<unk>", "<eos>", "the", "dog", "ran"), ())
    found = list_words(TEXTS, tokenizer, WordsConfig(), VECTORS)
    assert found == (("<unk>", "<eos>", "the", "dog", "ran", "off"), ("cow", "anna"))
    cased = list_words(TEXTS, tokenizer, WordsConfig(lowercase=False, max_fixed=1), VECTORS)
    assert cased == (("<unk>", "<eos>", "The", "ran", "the", "Dog", "dog", "off"), ("cow",))


def test_a_word_has_one_row_in_any_case_and_its_characters_keep_theirs(tokenizer: Tokenizer) -> None:
    words = list_words(TEXTS, tokenizer, WordsConfig(), VECTORS)
    made = build(words, tokenizer)
    vocabulary = made.hear_of(tokenizer)
    text = "the The DOG Anna cow wug blick"
    x = made(torch.from_numpy(vocabulary.encode(text))[None])[0]
    row = dict(zip(text.split(), x, strict=True))
    assert torch.equal(row["the"][:3], made.embedding[2])
    assert torch.equal(row["The"][:3], made.embedding[2])
    assert torch.equal(row["DOG"][:3], made.embedding[3])  # no text of training spells it so
    assert (row["cow"][:3].tolist(), row["Anna"][:3].tolist()) == ([0, 1, 2], [3, 4, 5])
    assert torch.equal(row["wug"][:3], made.embedding[0])
    assert torch.equal(row["blick"][:3], made.embedding[0])
    spelled = [row[word][3:] for word in ("the", "The", "wug", "blick")]
    assert len({tuple(each.tolist()) for each in spelled}) == 4


def test_words_come_back_from_the_weights_alone(tokenizer: Tokenizer) -> None:
    made = build(list_words(TEXTS, tokenizer, WordsConfig(), VECTORS), tokenizer, filters=())
    again = WordInput(made.config).double()
    again.load_state_dict(made.state_dict())
    made.hear_of(vocabulary := again.hear_of(tokenizer))
    tokens = torch.from_numpy(vocabulary.encode("The ran"))[None]
    assert torch.equal(again(tokens), made(tokens))
    assert again.d_out == 3


def test_threads_that_meet_new_words_at_once_read_what_one_thread_reads(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = list_words(TEXTS, tokenizer, WordsConfig(), VECTORS)
    alone, shared = build(words, tokenizer), build(words, tokenizer)
    texts = ("the wug Anna", "a blick cow", "one more dog")
    expected = [alone(torch.from_numpy(alone.hear_of(tokenizer).encode(text))[None]) for text in texts]
    tokens = [torch.from_numpy(shared.hear_of(tokenizer).encode(text))[None] for text in texts[:2]]
    spell = Interrupted(word_input.spell_words, lambda: shared(tokens[1]))
    monkeypatch.setattr(word_input, "spell_words", spell)
    found = [shared(tokens[0]), spell.result()]
    found.append(shared(torch.from_numpy(shared.hear_of(tokenizer).encode(texts[2]))[None]))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_threads_that_ask_first_are_told_of_one_vocabulary(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build(list_words(TEXTS, tokenizer, WordsConfig(), None), tokenizer)
    made.vocabulary = None
    make = Interrupted(word_input.ExtendedVocabulary, lambda: made.hear_of(tokenizer))
    monkeypatch.setattr(word_input, "ExtendedVocabulary", make)
    assert made.hear_of(tokenizer) is make.result()


def test_layers_above_an_encoder_read_its_states_beside_words(tokenizer: Tokenizer) -> None:
    made = build(list_words(TEXTS, tokenizer, WordsConfig(), None), tokenizer)
    layers = UpperLayers(MixerConfig(d_model=6), 5, made).double().eval()
    tokens, mask = torch.tensor([[2, 3, 4], [3, 2, 0]]), torch.tensor([[True, True, True], [True, True, False]])
    h = torch.randn(2, 3, 5, dtype=torch.float64)
    both = layers(h, tokens, mask)
    torch.testing.assert_close(both[1, :2], layers(h[1:, :2], tokens[1:, :2], mask[1:, :2])[0], rtol=0, atol=1e-12)
    for other in (layers(h + 1, tokens, mask), layers(h, tokens.flip(1), mask)):
        assert not torch.allclose(both[0], other[0])
