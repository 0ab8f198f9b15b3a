"""Words cut differently each time, by the rule of the paper."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.text.bpe_dropout import MAX_WORD, N_SAMPLES, BpeDropout, DropoutAtOnce
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

TEXT = "the cat sat on the mat, and they'll say: the hat! größer  \n größten \t 1234 12 日本語 日本 "
BPE = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=330), [TEXT] * 20)
PLAIN = BpeDropout(BPE, p=0.0)
BYTES = BpeDropout(BPE, p=1.0)


def with_merges(merges: list[list[str]]) -> Tokenizer:
    parsed = json.loads(train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=257), ["x"]).json)
    parsed["model"]["merges"] = merges
    for a, b in merges:
        parsed["model"]["vocab"].setdefault(a + b, len(parsed["model"]["vocab"]))
    return Tokenizer.from_json(json.dumps(parsed))


@given(st.one_of(st.text(), st.lists(st.sampled_from([*TEXT.split(" "), " ", "\n", "'"])).map(" ".join)))
def test_without_dropout_it_is_the_tokenizer(text: str) -> None:
    assert PLAIN.encode(text, 1).tolist() == BPE.encode(text).tolist()


@given(st.text())
def test_with_all_merges_left_out_it_is_bytes(text: str) -> None:
    ids = BYTES.encode(text, 1).tolist()
    assert [BPE.token_bytes(i) for i in ids] == [bytes([byte]) for byte in text.encode()]


@given(st.text(), st.floats(0, 1), st.integers(0, 10**6))
def test_the_text_is_always_kept(text: str, p: float, place: int) -> None:
    assert BPE.decode(BpeDropout(BPE, p).encode(text, place)) == text


def test_how_often_each_cut_comes_is_what_the_rule_says() -> None:
    # Merges ab, then abc. From a b c: ab is dropped with p, and then nothing else applies; else abc follows from ab c
    # with 1 - p. So P(a b c) = p, P(ab c) = (1 - p) p, P(abc) = (1 - p)^2.
    p = 0.3
    tokenizer = with_merges([["a", "b"], ["ab", "c"]])
    found: Counter[str] = Counter()
    for seed in range(400):
        dropout = BpeDropout(tokenizer, p, seed)
        for number in range(N_SAMPLES):
            found["|".join(tokenizer.token_text(i) for i in dropout._sample("abc", number))] += 1
    n = 400 * N_SAMPLES
    expected = {"a|b|c": p, "ab|c": (1 - p) * p, "abc": (1 - p) ** 2}
    assert {cut: count / n for cut, count in found.items()} == pytest.approx(expected, abs=0.02)  # 5 standard errors


def test_the_merge_learned_first_goes_first_and_leftmost() -> None:
    tokenizer = with_merges([["b", "c"], ["a", "b"], ["a", "a"]])
    dropout = BpeDropout(tokenizer, 0.0)
    assert [tokenizer.token_text(i) for i in dropout.encode("abc", 0)] == ["a", "bc"]
    assert [tokenizer.token_text(i) for i in dropout.encode("aaa", 0)] == ["aa", "a"]


def test_a_place_is_always_cut_alike_whatever_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    dropout = BpeDropout(BPE, 0.3, seed=5)
    first = [dropout.encode(TEXT, epoch, 7).tolist() for epoch in range(10)]
    assert len({tuple(ids) for ids in first}) == 10
    assert [dropout.encode(TEXT, epoch, 7).tolist() for epoch in reversed(range(10))] == first[::-1]
    monkeypatch.setattr("regard.text.bpe_dropout.MAX_REMEMBERED", 3)
    assert BpeDropout(BPE, 0.3, seed=5).encode(TEXT, 4, 7).tolist() == first[4]
    assert BpeDropout(BPE, 0.3, seed=6).encode(TEXT, 4, 7).tolist() != first[4]


def test_all_samples_of_a_word_are_used_about_equally() -> None:
    dropout = BpeDropout(BPE, 0.3)
    asked: Counter[int] = Counter()
    plain = dropout._sample

    def counted(unit: str, number: int) -> list[int]:
        asked[number] += 1
        return plain(unit, number)

    dropout._sample = counted  # type: ignore[method-assign]
    for place in range(200):
        dropout.encode("the " * 16, place)
    assert set(asked) == set(range(N_SAMPLES))
    assert min(asked.values()) > 60  # 106 on average, with a standard deviation of 10


def test_a_very_long_word_is_cut_as_always() -> None:
    word = "thecat" * 50
    assert len(word) > MAX_WORD
    assert BYTES.encode(f"the {word}", 0).tolist() == [*BYTES.encode("the", 0), *BPE.encode(f" {word}")]


words = st.one_of(st.sampled_from(TEXT.split()), st.text("ĠabchteosnmÃ¤", min_size=1, max_size=30))


@settings(deadline=None)
@given(st.lists(st.tuples(words, st.integers(0, N_SAMPLES - 1)), min_size=1, max_size=20), st.floats(0, 1))
def test_words_at_once_are_cut_as_one_by_one(asked: list[tuple[str, int]], p: float) -> None:
    dropout = BpeDropout(BPE, p, seed=2)
    asked = [(dropout.words(word)[0], number) for word, number in asked]
    ids, lengths = DropoutAtOnce(dropout).samples(asked)
    each = [dropout.ids_of(word, number) for word, number in asked]
    assert ids.tolist() == [i for found in each for i in found]
    assert lengths.tolist() == [len(found) for found in each]


def test_words_at_once_by_hand() -> None:
    tokenizer = with_merges([["b", "c"], ["a", "b"], ["a", "a"], ["aa", "a"], ["aa", "bc"]])
    ids, lengths = DropoutAtOnce(BpeDropout(tokenizer, 0.0)).samples([(w, 0) for w in ("abc", "aaaaa", "a", "aabc")])
    assert [tokenizer.token_text(i) for i in ids] == ["a", "bc", "aa", "aaa", "a", "aabc"]
    assert lengths.tolist() == [2, 2, 1, 1]


def test_without_merges_words_at_once_are_bytes() -> None:
    tokenizer = with_merges([])
    ids, lengths = DropoutAtOnce(BpeDropout(tokenizer, 0.5)).samples([("the", 0), ("a", 1)])
    assert [tokenizer.token_text(i) for i in ids] == ["t", "h", "e", "a"]
    assert lengths.tolist() == [3, 1]


def test_a_very_long_word_among_others_is_cut_as_always() -> None:
    dropout, word = BpeDropout(BPE, 1.0), "thecat" * 50
    ids, lengths = DropoutAtOnce(dropout).samples([("the", 0), (word, 1)])
    assert ids.tolist() == [*BYTES.encode("the", 0), *BPE.encode(word)]
    assert lengths.tolist() == [3, len(BPE.encode(word))]


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(RegardError, match="needs a byte-level BPE tokenizer with all 256 bytes, not one of 'byte'"):
        BpeDropout(train_tokenizer(TokenizerConfig(kind="byte"), []), 0.1)
    with pytest.raises(RegardError, match=r"p_bpe_dropout must be between 0 and 1, not 1\.5"):
        BpeDropout(BPE, 1.5)
