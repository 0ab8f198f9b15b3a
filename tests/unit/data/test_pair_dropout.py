"""A batch under BPE dropout is the same at once and pair by pair, whatever was asked before, however little is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import pair_dropout
from regard.data.pair_dropout import Flat, Growing, KeptTexts, PairDropout, SamplePool
from regard.data.pairs import MaxLengths, Pairs, Side, add_tags
from regard.data.rows import Rows
from regard.text.bpe_dropout import BpeDropout
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TEXT = "the cat sat on the mat, and they'll say: the hat! größer größten 1234 12 日本語 "
BPE = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=330), [TEXT] * 20)
OTHER = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=300), ["die Katze saß auf der Matte "] * 20)
WORDS = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT])
SENTENCES = [
    ("the cat sat on the mat,", "größer  die Katze"),
    ("x", "the hat! " * 12),
    ("thecat" * 40, "1234 12 日本語"),  # a word longer than MAX_WORD
    ("  they'll say:", "the\tcat "),
    ("", ""),
    ("the cat sat on the mat,", "größer  die Katze"),
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(TEXT.split()), min_size=1, max_size=9).map(" ".join))


def listed(sides: tuple[Flat, Flat]) -> list[list[int]]:
    return [part.tolist() for side in sides for part in side]


def tagged(pairs: Pairs, numbers: list[int]) -> Pairs:
    """Pairs whose tags are `numbers`: 0 for none, 1 for <2de>, 2 for <2fr>."""
    tags = ("<2de>", "<2fr>")
    tokenizer = add_tags(pairs.source.tokenizer, list(tags))
    rows = [
        [*([tokenizer.id_of(tags[number - 1])] if number else []), *pairs.source_ids(i)]
        for i, number in enumerate(numbers)
    ]
    source = Side(pairs.source.texts, Rows.of(rows), tokenizer)
    return replace(pairs, source=source, tag_numbers=np.array(numbers), tags=tags)


@settings(deadline=None, max_examples=60)
@given(st.data(), st.lists(st.tuples(texts, texts), min_size=1, max_size=6), st.sampled_from([0.1, 0.5, 1.0]))
def test_a_batch_at_once_is_the_same_pair_by_pair(data: st.DataObject, sides: list[tuple[str, str]], p: float) -> None:
    pairs = Pairs.of(sides, BPE, data.draw(st.sampled_from([BPE, OTHER, WORDS])))
    pairs = tagged(pairs, data.draw(st.lists(st.integers(0, 2), min_size=len(sides), max_size=len(sides))))
    pairs = pairs.select(np.array(data.draw(st.permutations(range(len(sides))))))
    limit = st.sampled_from([None, 3, 8, 20])
    dropout = PairDropout(pairs, p, data.draw(st.integers(0, 5)), MaxLengths(data.draw(limit), data.draw(limit)))
    for epoch in (0, 1, 7):
        chosen = np.array(data.draw(st.lists(st.integers(0, len(sides) - 1), min_size=1, max_size=8)))
        assert listed(dropout.cut(chosen, epoch)) == listed(dropout.cut_each(chosen, epoch))


def test_a_tag_and_a_side_that_is_too_long_by_hand() -> None:
    pairs = tagged(Pairs.of([("the cat", "on"), ("the", "the cat"), ("at", "sat")], BPE), [1, 0, 2])
    of_bytes = [BPE.id_of(char) for char in "the"], [BPE.id_of(char) for char in "at"]
    de, fr = (pairs.source.tokenizer.id_of(tag) for tag in ("<2de>", "<2fr>"))
    # As bytes the first source has 1 + 7 tokens, more than 3, and the third 1 + 2; of the targets the second has 7.
    (source, n_source), (target, n_target) = PairDropout(pairs, 1.0, 0, MaxLengths(3, 3)).cut(np.array([0, 1, 2]), 0)
    assert pairs.source_ids(0)[0] == de
    assert source.tolist() == [*pairs.source_ids(0), *of_bytes[0], fr, *of_bytes[1]]
    assert n_source.tolist() == [len(pairs.source_ids(0)), 3, 3]
    assert target.tolist() == [BPE.id_of("o"), BPE.id_of("n"), *pairs.target_ids(1), *map(BPE.id_of, "sat")]
    assert n_target.tolist() == [2, len(pairs.target_ids(1)), 3]


@pytest.mark.parametrize("limit", ["MAX_POOL", "MAX_WORDS", "MAX_UNITS", "MAX_KEPT"])
def test_what_is_forgotten_is_made_again_alike(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_dropout, limit, 3)
    dropout, order = PairDropout(Pairs.of(SENTENCES, BPE, OTHER), 0.4, 3, MaxLengths()), np.arange(len(SENTENCES))
    for epoch in (0, 1, 0):
        assert listed(dropout.cut(order[::-1], epoch)) == listed(dropout.cut_each(order[::-1], epoch))
        assert listed(dropout.cut(order[:2], epoch)) == listed(dropout.cut_each(order[:2], epoch))


def test_samples_and_texts_beyond_the_limits_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SamplePool(BpeDropout(BPE, 0.4))
    kept = KeptTexts(Side.of([source for source, _ in SENTENCES], BPE).texts, pool)
    for epoch in range(5):
        kept.cut(np.array([0, 5]), epoch, 0)
    n_made = len(pool._starts)
    assert not kept.is_full()
    monkeypatch.setattr(pair_dropout, "MAX_POOL", 10)
    kept.cut(np.array([0]), 0, 0)
    assert len(pool._starts) < 10 < n_made
    monkeypatch.setattr(pair_dropout, "MAX_KEPT", 10)
    assert kept.is_full()  # 2 texts of 7 words
    monkeypatch.undo()
    monkeypatch.setattr(pair_dropout, "MAX_WORDS", 5)
    assert kept.is_full()


def test_a_sample_is_made_once() -> None:
    pool = SamplePool(BpeDropout(BPE, 0.4))
    the, cat = (number >> 1 for number in pool.numbers("the cat"))
    words, choices = np.array([the, cat, the, the], dtype=np.int32), np.array([3, 3, 3, 5], dtype=np.uint8)
    first = pool.gather(words, choices)
    assert len(pool._starts) - 1 == 3
    assert [part.tolist() for part in pool.gather(words, choices)] == [part.tolist() for part in first]
    assert len(pool._starts) - 1 == 3


def test_a_text_is_numbers_that_say_where_units_begin() -> None:
    pool = SamplePool(BpeDropout(BPE, 0.4))
    # Words 0 the, 1 ␣cat, 2 the comma; 3 ␣the: units are the, ␣cat and its comma, ␣the, ␣cat.
    assert pool.numbers("the cat, the cat") == [1, 3, 4, 7, 3]


def test_a_growing_array_keeps_what_it_was_given() -> None:
    growing, expected = Growing(7), [7]
    for n in (0, 5, 3000, 1, 9000):
        growing.add(np.arange(n))
        expected += range(n)
        assert len(growing) == len(expected)
        assert growing.values.tolist() == expected
