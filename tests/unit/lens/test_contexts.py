"""One word in several contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import SIZES

from regard.errors import RegardError
from regard.lens.context_view import explain_first
from regard.lens.contexts import Occurrence, WordInTexts, find_word, project, read_word
from regard.models.table import build_model, model_config
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TEXTS = ("The shirt is green", "Green recruits are here")
WORDS = train_tokenizer(
    TokenizerConfig(kind="word", vocab_size=None), ["the shirt is green Green recruits are here The"]
)


def test_a_word_is_found_capital_or_not_and_never_inside_another() -> None:
    found = find_word("green", ("green Greenland green", "is Green."))
    assert found == (Occurrence(0, 0, 5), Occurrence(0, 16, 21), Occurrence(1, 3, 8))
    with pytest.raises(RegardError, match=r"The word 'green' is not in the text 'Greenland'\. Give texts"):
        find_word("green", ("green", "Greenland"))


def made_up(states: list[list[float]]) -> WordInTexts:
    words = ("green", "green", "blue", "army")
    return WordInTexts(
        (Occurrence(0, 0, 5), Occurrence(1, 0, 5)),
        ("embedding",),
        (np.array(states),),
        words,
        words,
        np.zeros((0, 0)),
        (),
    )


def test_cosines_are_taken_from_the_mean_of_the_layer() -> None:
    found = made_up([[6.0, 5], [4, 5], [5, 6], [5, 4]])  # around (5, 5)
    np.testing.assert_allclose(found.alike(0), [[1, -1], [-1, 1]], rtol=0, atol=1e-12)
    assert found.any_two(0) > 0.9  # with the mean left in, any two look alike
    assert found.cosine(0, 0, 2) == pytest.approx(0.0, abs=1e-12)


def test_neighbours_are_other_words_the_nearest_first() -> None:
    found = made_up([[2.0, 0], [1, 0], [0.5, 0.1], [-3, 0]])
    assert [found.words[i] for i in found.neighbours(0, 0)] == ["blue", "army"]


def test_a_neighbour_is_named_once_however_often_it_stands_near() -> None:
    words = ("green", "blue", "Blue", "army")
    states = np.array([[2.0, 0], [1.9, 0.1], [1.8, 0.1], [-3, 0]])
    found = WordInTexts((Occurrence(0, 0, 5),), ("embedding",), (states,), words, words, np.zeros((0, 0)), ())
    assert [found.words[i] for i in found.neighbours(0, 0)] == ["blue", "army"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("green", "Green", "blue", "army"), " (it is spelled in several ways)"),
        (("green", "green", "blue", "army"), " (to which the vector of the place may be added)"),
    ],
)
def test_why_a_word_has_two_vectors_before_the_first_layer(words: tuple[str, ...], said: str) -> None:
    found = replace(made_up([[6.0, 5], [4, 5], [5, 6], [5, 4]]), words=words)
    assert explain_first(found) == said
    assert explain_first(made_up([[6.0, 5], [6, 5], [5, 6], [5, 4]])) == ""


def test_a_map_keeps_the_distances_of_points_that_lie_in_a_plane() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(6, 2)) @ np.linalg.qr(rng.normal(size=(5, 2)))[0].T  # a plane in five dimensions
    plane = project(flat)

    def distances(rows: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm(rows[:, None] - rows[None], axis=-1))

    np.testing.assert_allclose(distances(plane), distances(flat), rtol=0, atol=1e-10)
    assert (plane[0] >= 0).all()


def test_a_type_is_its_embedding_and_a_token_is_what_each_layer_gives_for_it() -> None:
    torch.manual_seed(0)
    model = (
        build_model("transformer", model_config("transformer", SIZES["transformer"]), WORDS.vocab_size).double().eval()
    )
    found = read_word(model, WORDS, "green", TEXTS)
    assert found is not None
    assert found.layers == ("embedding", "layers.0.hidden", "layers.1.hidden")
    assert found.words == ("green", "Green", "The", "shirt", "is", "recruits", "are", "here")
    np.testing.assert_allclose(
        found.to_type[0], [1.0, 1.0], rtol=0, atol=1e-6
    )  # before the first layer: the type itself
    ids = torch.tensor([[WORDS.eos, *WORDS.encode(TEXTS[0]).tolist()]])
    with torch.no_grad():
        expected = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    token = expected[1][0, -1].numpy()
    np.testing.assert_allclose(found.states[1][0], token, rtol=0, atol=1e-6)
    kind = model.embedding[ids[0, -1]].detach().numpy()
    cosine = token @ kind / np.linalg.norm(token) / np.linalg.norm(kind)
    assert found.to_type[1][0] == pytest.approx(cosine, abs=1e-6)


def test_states_that_overflow_are_refused_before_they_are_compared() -> None:
    model: Any = build_model("lstm", model_config("lstm", SIZES["lstm"]), WORDS.vocab_size)
    with torch.no_grad():
        model.embedding.fill_(torch.nan)
    with pytest.raises(RegardError, match="cannot be shown, its numbers overflow: its weights are damaged"):
        read_word(model, WORDS, "green", TEXTS)
