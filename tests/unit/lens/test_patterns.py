"""What a head does is named by measurement: on matrices that do one thing, and on those that do none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.lens.patterns import MIN_SHARE, HeadNamer, Pattern, list_patterns

TOKENS = ["<eos>", "the", " cat", ",", " the", " d", "og", " and", " the", "."]
WORDS = [0, 1, 2, 3, 4, 5, 5, 6, 7, 8]
TEXTS = ["<eos>", "the", "cat", ",", "the", "dog", "and", "the", "."]
OWN = [False] + [True] * 9
T = len(TOKENS)
PATTERNS = list_patterns(TOKENS, WORDS, TEXTS, OWN)


def name(weights: NDArray[np.float64], is_causal: bool = True) -> Pattern:
    can_see = np.tril(np.ones((T, T), bool)) if is_causal else np.ones((T, T), bool)
    return HeadNamer(PATTERNS, can_see, OWN).name(weights)


def put(places: NDArray[np.bool_], is_causal: bool = True, share: float = 0.9) -> NDArray[np.float64]:
    """`share` of every row's weight on its places, even over them, and the rest even over all that it sees."""
    can_see = np.tril(np.ones((T, T), bool)) if is_causal else np.ones((T, T), bool)
    there = places & can_see
    even = can_see / can_see.sum(axis=1, keepdims=True)
    n = there.sum(axis=1, keepdims=True)
    return np.where(n > 0, share * there / np.maximum(n, 1) + (1 - share) * even, even)


@pytest.mark.parametrize("pattern", ["itself", "previous token", "first token", "marks"])
def test_a_head_that_does_one_thing_is_named_after_it(pattern: str) -> None:
    found = name(put(PATTERNS[pattern]))
    assert found.name == pattern
    assert found.share > 0.6


def test_a_head_that_looks_ahead_is_named_where_it_may() -> None:
    found = name(put(PATTERNS["next token"], is_causal=False), is_causal=False)
    assert found.name == "next token"
    assert found.share == pytest.approx(8 * 0.91 / 9)  # the last token has no next one


def test_the_same_word_is_measured_where_it_came_before() -> None:
    found = name(put(PATTERNS["same word"]))
    # Tokens 4 and 8 are "the" again: one earlier key of 5 seen, and two of 9.
    assert found == Pattern("same word", pytest.approx(((0.9 + 0.1 / 5) + (0.9 + 0.2 / 9)) / 2))


def test_a_head_that_looks_at_the_token_before_is_not_called_after_its_word() -> None:
    assert name(put(PATTERNS["previous token"])).name == "previous token"


def test_even_weights_are_broad_and_their_share_is_all_keys() -> None:
    assert name(put(np.zeros((T, T), bool))) == Pattern("broad", pytest.approx(1.0))


def test_a_head_that_does_several_things_is_mixed() -> None:
    rng = np.random.default_rng(0)
    one_hot = np.zeros((T, T), bool)
    for q in range(1, T):
        one_hot[q, (q - 1) if q % 3 == 0 else q if q % 3 == 1 else int(rng.integers(0, max(1, q - 2)))] = True
    found = name(put(one_hot))
    assert found.name == "mixed"
    assert found.share < 0.6


def test_a_pattern_must_hold_most_of_the_weight_it_is_named_after() -> None:
    assert name(put(PATTERNS["previous token"], share=MIN_SHARE / 2)).name != "previous token"


def test_a_short_text_is_not_named_after_what_even_weights_do() -> None:
    weights = np.array([[1.0, 0.0], [0.5, 0.5]])
    patterns = list_patterns(["<eos>", "a"], [0, 1], ["<eos>", "a"], [False, True])
    assert HeadNamer(patterns, np.tril(np.ones((2, 2), bool)), [False, True]).name(weights).name == "broad"


def test_nothing_to_measure_has_no_name() -> None:
    assert name(np.zeros((T, T))) == Pattern("mixed", 0.0)


def test_a_head_in_which_most_tokens_look_at_one_place_looks_at_one_word() -> None:
    column = np.zeros((T, T), bool)
    column[3:, 2] = True  # all that come later look at "cat"
    found = name(put(column, share=0.6))
    assert found.name == "one word"
    assert found.share == pytest.approx(0.6 + 0.4 * np.mean([1 / (q + 1) for q in range(3, T)]))
    late = np.zeros((T, T), bool)
    late[8:, 7] = True  # which two tokens only may look at
    assert name(put(late)).name != "one word"
