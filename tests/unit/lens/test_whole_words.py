"""A whole word's probability is that of its pieces and of its end: worked by hand over a table of pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.lens.whole_words import Opened, complete_words, rank_tokens
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

LETTERS = train_tokenizer(TokenizerConfig(kind="char"), ["ab ba, b"])


class Spelled:
    """P(next letter | letters so far) from a table; what it leaves open goes to the end of the text."""

    def __init__(self, table: Mapping[str, Mapping[str, float]]) -> None:
        self.table = table

    def row(self, text: str) -> Tensor:
        p = torch.zeros(LETTERS.vocab_size, dtype=torch.float64)
        for letter, share in self.table.get(text, {}).items():
            p[int(LETTERS.encode(letter)[0])] = share
        p[LETTERS.eos] += 1 - p.sum()
        return p.log()

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        texts = [text + LETTERS.decode([token]) for text, token in zip(state, tokens.tolist(), strict=True)]
        return torch.stack([self.row(text) for text in texts]), texts

    def reorder(self, state: Any, rows: Tensor) -> Any:
        return [state[row] for row in rows.tolist()]


def open_after(text: str, table: Mapping[str, Mapping[str, float]]) -> Opened:
    stepper = Spelled(table)
    return Opened(stepper, stepper.row("")[None], [""], LETTERS, text)


def test_a_word_is_as_probable_as_its_letters_and_its_end() -> None:
    table = {
        "": {" ": 1.0},
        " ": {"a": 0.75, "b": 0.25},
        " a": {"b": 0.5, " ": 0.5},
        " ab": {" ": 1.0},
        " b": {",": 1.0},
    }
    found = dict(complete_words(open_after("b", table), 5))
    assert found == {"a": pytest.approx(0.375), "ab": pytest.approx(0.375), "b": pytest.approx(0.25)}


def test_marks_and_the_end_are_words_by_themselves() -> None:
    found = dict(complete_words(open_after("b", {"": {",": 0.5, " ": 0.25}, " ": {"a": 1.0}}), 5))
    assert found == {",": 0.5, "<eos>": 0.25, "a": 0.25}


def test_what_goes_on_the_last_word_begins_with_an_ellipsis() -> None:
    found = dict(complete_words(open_after("b", {"": {"a": 1.0}, "a": {" ": 1.0}}), 5))
    assert found == {"…a": pytest.approx(1.0)}
    assert dict(complete_words(open_after("b ", {"": {"a": 1.0}, "a": {" ": 1.0}}), 5)) == {"a": pytest.approx(1.0)}


def test_a_word_without_end_is_given_up_after_so_many_pieces() -> None:
    table = {"a" * n: {"a": 0.5} for n in range(1, 9)} | {"": {"a": 1.0}}
    found = dict(complete_words(open_after("", table), 20, max_pieces=4))
    assert found == {"a": pytest.approx(0.5), "aa": pytest.approx(0.25), "aaa": pytest.approx(0.125)}


def test_probabilities_of_words_never_sum_to_more_than_one() -> None:
    table = {"": {"a": 0.4, "b": 0.4, ",": 0.1}, "a": {"b": 0.5}, "b": {"a": 0.3, " ": 0.2}}
    assert math.fsum(p for _, p in complete_words(open_after("", table), 50)) == pytest.approx(1.0)


def test_tokens_are_ranked_by_probability() -> None:
    opened = open_after("", {"": {"a": 0.25, "b": 0.5}})
    assert rank_tokens(opened.log_probs, LETTERS, 1) == [("b", pytest.approx(0.5))]
