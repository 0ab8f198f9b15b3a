"""Dates, numbers, reversal and copying."""

import datetime
import re
from collections import Counter

import pytest

from regard.data.builtin.grammar import diagnostics
from regard.data.builtin.grammar.diagnostics import MONTHS, TASKS, spell_number, spell_ordinal, spell_year
from regard.data.builtin.grammar.held_out import SPLITS
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("number", "british", "american"),
    [
        (0, "zero", "zero"),
        (13, "thirteen", "thirteen"),
        (101, "one hundred and one", "one hundred one"),
        (1_000, "one thousand", "one thousand"),
        (1_001, "one thousand and one", "one thousand one"),
        (90_210, "ninety thousand two hundred and ten", "ninety thousand two hundred ten"),
        (3_000_300, "three million three hundred", "three million three hundred"),
    ],
)
def test_numbers_are_read_as_they_are_spoken(number: int, british: str, american: str) -> None:
    assert spell_number(number) == british
    assert spell_number(number, says_and=False) == american


def test_days_and_years_are_read_as_they_are_spoken() -> None:
    spoken = {
        1: "first",
        2: "second",
        5: "fifth",
        12: "twelfth",
        13: "thirteenth",
        20: "twentieth",
        22: "twenty-second",
    }
    assert {day: spell_ordinal(day) for day in spoken} == spoken
    assert spell_year(2010) == "twenty ten"
    assert spell_year(2000) == "two thousand"


def test_a_date_is_the_one_its_words_name() -> None:
    ways = set()
    for source, target in diagnostics.dates("train", 300):
        date = datetime.date.fromisoformat(target)
        assert any(MONTHS[date.month - 1].startswith(word) for word in source.split() if word[0].isupper())
        assert spell_ordinal(date.day) in source or re.search(rf"\b{date.day}(st|nd|rd|th)?\b", source)
        assert str(date.year) in source or spell_year(date.year) in source
        ways.add(re.sub(r"\d+|[A-Z]\w+", "x", re.sub(r"the [\w-]+", "the x", source)).split(" x")[0])
    assert len(ways) >= 3


def test_a_number_is_the_one_its_words_name() -> None:
    lengths = set()
    for source, target in diagnostics.numbers("train", 300):
        number = int(target)
        assert source in (spell_number(number), spell_number(number, says_and=False), f"{number:,}")
        lengths.add(len(target))
    assert lengths == set(range(1, 8))


@pytest.mark.parametrize("split", SPLITS)
def test_no_number_fills_a_split_and_every_longer_one_is_as_frequent(split: str) -> None:
    targets = [pair.target for pair in diagnostics.numbers(split, 3000)]
    assert max(Counter(targets).values()) < 30  # one in 500 would be 6 of them; nought was one in six of validation
    lengths = Counter(map(len, targets))
    assert set(lengths) >= set(range(2, 8))
    assert all(lengths[n_digits] > 3000 / 7 for n_digits in range(4, 8))


def test_splits_share_no_number_whatever_the_seed() -> None:
    held = {s: {p.target for seed in (0, 1) for p in diagnostics.numbers(s, 2000, seed)} for s in SPLITS}
    assert not held["train"] & held["valid"]
    assert not held["train"] & held["test"]
    assert not held["valid"] & held["test"]


def test_reversal_turns_round_and_copying_repeats() -> None:
    for source, target in diagnostics.reversal("test", 50):
        assert source.split() == target.split()[::-1]
    for source, target in diagnostics.copying("test", 50):
        assert source == target
        assert 2 <= len(source.split()) <= 12


@pytest.mark.parametrize("name", TASKS)
def test_what_is_tested_was_never_trained_on_but_its_words_were(name: str) -> None:
    train, test = list(TASKS[name]("train", 4000, 0)), list(TASKS[name]("test", 100, 1))
    assert not {pair.target for pair in train} & {pair.target for pair in test}
    if name in ("reversal", "copying"):
        seen = {pair for source, _ in train for pair in zip(source.split(), source.split()[1:], strict=False)}
        for source, _ in test:
            assert not set(zip(source.split(), source.split()[1:], strict=False)) <= seen
    words = {word for source, _ in train for word in source.split() if word.isalpha()}
    assert {word for source, _ in test for word in source.split() if word.isalpha()} <= words


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_a_function_of_seed_and_split(name: str) -> None:
    assert list(TASKS[name]("valid", 5, 3)) == list(TASKS[name]("valid", 5, 3))
    assert list(TASKS[name]("valid", 5, 3)) != list(TASKS[name]("valid", 5, 4))
    assert list(TASKS[name]("valid", 3, 3)) == list(TASKS[name]("valid", 5, 3))[:3]


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(RegardError, match="split must be one of train, valid, test, not 'dev'"):
        diagnostics.dates("dev", 1)
