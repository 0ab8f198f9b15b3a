"""The arrays equal the dictionaries; distributions sum to one; files lose nothing, whatever the text."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_ngram import PlainNgram

from regard.count.arpa import escape, unescape
from regard.count.config import SMOOTHINGS, NgramConfig
from regard.count.ngram import NgramModel

configs = st.builds(
    NgramConfig, order=st.integers(1, 6), smoothing=st.sampled_from(SMOOTHINGS), k=st.sampled_from([0.01, 0.5, 1.0])
)


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray]:
    """A vocabulary size, a training stream and a test stream; many sentence ends, some words rare or never seen."""
    V = draw(st.integers(2, 7))
    token = st.one_of(st.just(0), st.integers(0, V - 1), st.integers(0, min(2, V - 1)))
    train = draw(st.lists(token, min_size=1, max_size=120))
    test = draw(st.lists(st.integers(0, V - 1), max_size=25))
    return V, np.array(train), np.array(test, np.int64)


def fit(config: NgramConfig, V: int, ids: np.ndarray) -> NgramModel:
    return NgramModel.fit(config, ids, V, unk=None)


@given(configs, streams())
def test_arrays_equal_dictionaries(config, drawn):
    V, train, test = drawn
    plain = PlainNgram(config, train.tolist(), V)
    model = fit(config, V, train)
    expected = [plain.probability(w, h) for h, w in plain.walk(test.tolist())]
    assert np.exp(-model.nats(test)) == pytest.approx(expected, rel=1e-12, abs=0)
    for n, counted in enumerate(model.n_ngrams[1:], start=2):
        assert counted == sum(len(ngram) == n for ngram in plain.c)


@given(configs, streams())
def test_a_distribution_sums_to_one_and_says_what_nats_say(config, drawn):
    V, train, test = drawn
    model = fit(config, V, train)
    nats = model.nats(test)
    for i in range(len(test)):
        log_probs = model.next_log_probs(test[:i])
        assert log_probs.shape == (V,)
        assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-12)
        assert -log_probs[test[i]] == pytest.approx(nats[i], abs=1e-12)


@given(configs, streams())
def test_a_sentence_scores_the_same_in_any_company(config, drawn):
    V, train, test = drawn
    model = fit(config, V, train)
    together = model.nats(np.concatenate([test, [0], test]))
    assert np.array_equal(together[: len(test)], together[len(test) + 1 :])
    assert np.array_equal(together[: len(test)], model.nats(test))


@given(configs, streams())
def test_an_arpa_file_holds_the_whole_model(config, drawn):
    V, train, test = drawn
    model = fit(config, V, train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        model.write_arpa(path, ["</s>", *(f"w{i}" for i in range(1, V))])
        again, words = NgramModel.read_arpa(path)
    assert words[1:] == [f"w{i}" for i in range(1, V)]
    assert again.n_ngrams == model.n_ngrams
    assert again.nats(test) == pytest.approx(model.nats(test), abs=1e-6)  # the file keeps 7 decimals


@given(st.text(max_size=8))
def test_any_word_has_a_name_without_white_space_and_comes_back(word):
    name = escape(word)
    assert name.encode().split() == [name.encode()]
    assert len(name.splitlines()) == 1
    assert unescape(name) == word


@given(st.lists(st.sampled_from(["<", "0x", "2", "A", ">", " ", "s"]), max_size=8).map("".join))
def test_words_that_look_like_escapes_come_back(word):
    assert unescape(escape(word)) == word
