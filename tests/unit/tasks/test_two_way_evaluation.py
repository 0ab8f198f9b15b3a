"""What ELMo's figures say of words that it does not predict."""

import numpy as np
import torch

from regard.data.stream import Stream
from regard.models.elmo import BothWays, Elmo
from regard.models.elmo_config import ElmoConfig
from regard.tasks.bidirectional_objective import evaluate_both_ways
from regard.text.extended import ExtendedVocabulary
from regard.text.learning import word_tokenizer

WORDS = ["<eos>", "<unk>", "the", "cat", "sat", "dog", "mat"]


def small(n_vocab: int | None) -> BothWays:
    torch.manual_seed(0)
    shape = {"d_model": 4, "d_hidden": 6, "d_character": 3, "filters": [2, 3], "max_characters": 8}
    model = Elmo(ElmoConfig.from_dict({**shape, "n_vocab": n_vocab}), len(WORDS)).eval()
    model.learn_words(ExtendedVocabulary(word_tokenizer(WORDS)))
    return BothWays(model)


def stream_of(text: str) -> Stream:
    ids = word_tokenizer(WORDS).encode(text)
    return Stream((np.asarray(ids),), len(text), len(text.split()), 1)


def test_words_that_are_not_predicted_are_counted_and_bits_per_byte_are_left_out() -> None:
    text = stream_of("the dog sat the owl mat")  # dog, mat: no row of four; owl: not in the vocabulary
    found = evaluate_both_ways(small(n_vocab=5), text)
    assert found.n_unknown == 3
    measured = found.measure()
    assert measured.headline == "loss, nats a word"
    assert [figure.name for figure in measured.figures if "byte" in figure.name] == []
    assert measured.notes == (
        "3 of 6 words (50.0%) are none that it predicts, and count as <unk>: compare with models that predict the same "
        "words alone.",
    )
    assert "bits_per_byte" not in str(found.to_dict())


def test_a_model_that_predicts_every_word_of_a_text_says_nothing_of_unknown_ones() -> None:
    found = evaluate_both_ways(small(n_vocab=None), stream_of("the dog sat the mat"))
    assert (found.n_unknown, found.measure().notes) == (0, ())
