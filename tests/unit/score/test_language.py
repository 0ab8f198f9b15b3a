"""Languages told apart by their trigrams."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from regard.data.builtin.grammar import Grammar
from regard.errors import RegardError
from regard.score.language import LanguageGuesser, trigrams

WORDS = LanguageGuesser.learn({"x": ["ab", "ab"], "y": ["abc"]})


def test_the_probability_of_a_language_by_hand() -> None:
    """x has ' ab' twice and 'ab ' twice; y has ' ab', 'abc' and 'bc '. Four kinds, and one for the unseen: C = 5.

    ' ab' and 'ab ' in turn: P(text | x) = 3/9 · 3/9, P(text | y) = 2/8 · 1/8.
    """
    x, y = (3 / 9) * (3 / 9), (2 / 8) * (1 / 8)
    found = WORDS.log_probs("ab")
    assert found["x"] == pytest.approx(math.log(x / (x + y)), abs=1e-12)
    assert found["y"] == pytest.approx(math.log(y / (x + y)), abs=1e-12)


def test_what_was_never_seen_is_likelier_where_less_was_seen() -> None:
    # ' q ': 1/9 in x, 1/8 in y
    assert WORDS.log_probs("q")["y"] == pytest.approx(math.log((1 / 8) / (1 / 8 + 1 / 9)), abs=1e-12)


def test_case_and_white_space_are_none_of_a_language() -> None:
    assert list(trigrams(" Ein\tHund\n")) == list(trigrams("ein hund"))
    assert list(trigrams("ab c")) == [" ab", "ab ", "b c", " c "]
    assert list(trigrams(" \n")) == []


def test_an_empty_text_is_in_no_language() -> None:
    assert WORDS.guess("") is None
    assert WORDS.guess(" \n") is None
    assert WORDS.shares(["", "ab", "abc", "abc"]) == {"x": 0.25, "y": 0.5}


@given(st.text(max_size=40))
def test_probabilities_of_the_languages_sum_to_one(text: str) -> None:
    assert sum(math.exp(value) for value in WORDS.log_probs(text).values()) == pytest.approx(1.0, abs=1e-9)


def test_sentences_of_three_languages_are_told_apart() -> None:
    def texts(split: str, n: int) -> dict[str, list[str]]:
        sentences = list(Grammar(seed=3).sentences(split, n))
        return {language: [s.text(language) for s in sentences] for language in ("en", "de", "fr")}

    guesser = LanguageGuesser.learn(texts("train", 150))
    for language, held_out in texts("test", 60).items():
        assert guesser.shares(held_out)[language] >= 0.98


def test_what_cannot_be_learned_or_guessed_is_refused() -> None:
    with pytest.raises(RegardError, match="Texts in en were given: to tell languages apart, give texts in two or more"):
        LanguageGuesser.learn({"en": ["a cat"]})
    with pytest.raises(RegardError, match="There is no text in 'de' to learn the language from: give it some"):
        LanguageGuesser.learn({"en": ["a cat"], "de": [" "]})
    with pytest.raises(RegardError, match="There is no text whose language could be guessed: give at least one"):
        WORDS.shares([])
