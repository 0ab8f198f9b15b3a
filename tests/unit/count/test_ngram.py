"""The n-gram model: scoring, next-token distributions, other smoothings, in and out."""

import numpy as np
import pytest
from safetensors.numpy import load, save
from sentences import find_words, number_words

import regard.count.ngram
import regard.count.trie
from regard.count.config import NgramConfig
from regard.count.counts import count_ngrams, sentence_starts
from regard.count.ngram import NgramModel
from regard.count.trie import Trie
from regard.errors import RegardError

END, A, B, C = range(4)
TEXT = np.array([A, B, END, A, C, END])  # "a b", "a c"


def fit(smoothing: str = "kneser-ney", order: int = 2, ids: np.ndarray = TEXT, vocab_size: int = 4, k: float = 0.5):
    return NgramModel.fit(NgramConfig(order=order, smoothing=smoothing, k=k), ids, vocab_size, unk=None)


def next_probabilities(model: NgramModel, context: list[int]) -> list[float]:
    return np.exp(model.next_log_probs(context)).tolist()


def test_mle_is_the_share_of_each_continuation():
    model = fit("mle")
    assert next_probabilities(model, [A]) == [0, 0, 0.5, 0.5]
    assert next_probabilities(model, []) == [0, 1, 0, 0]
    assert next_probabilities(model, [A, B]) == [1, 0, 0, 0]


def test_mle_gives_what_it_never_saw_infinite_nats():
    nats = fit("mle").nats(np.array([A, A, END]))
    assert nats[0] == 0
    assert np.isposinf(nats[1:]).all()  # neither a a nor a </s> was seen


def test_mle_asks_the_longest_context_it_has_seen():
    model = fit("mle", order=3)
    # "c a" was never seen; "a" was.
    assert next_probabilities(model, [C, A]) == [0, 0, 0.5, 0.5]


def test_add_k_adds_k_to_every_count():
    model = fit("add-k", k=0.5)  # V = 4, so k V = 2
    assert next_probabilities(model, [A]) == pytest.approx([0.5 / 4, 0.5 / 4, 1.5 / 4, 1.5 / 4], abs=1e-15)
    assert next_probabilities(model, []) == pytest.approx([0.5 / 4, 2.5 / 4, 0.5 / 4, 0.5 / 4], abs=1e-15)
    assert next_probabilities(model, [A, B]) == pytest.approx([1.5 / 3, 0.5 / 3, 0.5 / 3, 0.5 / 3], abs=1e-15)


def test_add_k_is_uniform_after_a_context_never_seen():
    assert next_probabilities(fit("add-k", order=3), [C, A]) == pytest.approx([0.25] * 4, abs=1e-15)


def test_add_k_uses_the_whole_of_a_context_shorter_than_the_order():
    model = fit("add-k", order=4)
    # The second word follows "<s> a", seen twice: once with b, once with c.
    assert next_probabilities(model, [A]) == pytest.approx([0.5 / 4, 0.5 / 4, 1.5 / 4, 1.5 / 4], abs=1e-15)


def test_add_k_of_order_one_counts_tokens():
    assert next_probabilities(fit("add-k", order=1), []) == pytest.approx(
        [2.5 / 8, 2.5 / 8, 1.5 / 8, 1.5 / 8], abs=1e-15
    )


def test_nats_are_the_negative_log_of_the_next_token_distribution():
    model = fit(order=3)
    ids = [A, B, B, END, END, C, A, B]
    expected = [-model.next_log_probs(ids[:i])[token] for i, token in enumerate(ids)]
    assert model.nats(np.array(ids)).tolist() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 64])
def test_the_size_of_a_chunk_never_changes_a_score(monkeypatch, chunk):
    rng = np.random.default_rng(0)
    model = fit(order=4, ids=rng.integers(0, 4, 200))
    ids = rng.integers(0, 4, 50)
    whole, matched = model.nats(ids), model.matched_orders(ids)
    monkeypatch.setattr(regard.count.ngram, "CHUNK", chunk)
    assert np.array_equal(model.nats(ids), whole)
    assert np.array_equal(model.matched_orders(ids), matched)


def test_matched_orders_say_how_long_the_known_ngram_is():
    model = fit(order=3)
    # <s> a | <s> a b | a b </s> | c after <s> is new | c a is new | a b, without c before it
    assert model.matched_orders(np.array([A, B, END, C, A, B])).tolist() == [2, 3, 3, 1, 1, 2]


def test_what_stands_before_the_end_of_a_sentence_is_forgotten():
    model = fit(order=4)
    assert np.array_equal(model.next_log_probs([B, C, END, A]), model.next_log_probs([A]))
    assert np.array_equal(model.next_log_probs([B, END]), model.next_log_probs([]))


def test_ids_of_any_integer_width_score_alike():
    model = fit()
    assert np.array_equal(model.nats(TEXT.astype(np.uint16)), model.nats(TEXT.astype(np.int64)))


def test_an_empty_stream_has_no_nats():
    assert fit().nats(np.zeros(0, np.int64)).shape == (0,)
    assert fit().matched_orders(np.zeros(0, np.int64)).shape == (0,)


def test_ngrams_are_counted_by_order_with_the_start_symbol_among_the_unigrams():
    assert fit(order=3).n_ngrams == [5, 5, 4]


def test_an_order_longer_than_every_sentence_is_allowed():
    model = fit(order=7)
    assert model.n_ngrams == [5, 5, 4, 2, 0, 0, 0]
    assert np.exp(model.next_log_probs([A])).sum() == pytest.approx(1, abs=1e-15)
    assert np.isfinite(model.nats(np.array([A, B, C, A, B, C, A, B, C, END]))).all()


def test_tensors_pass_through_safetensors_unchanged():
    for smoothing in ("kneser-ney", "add-k", "mle"):
        model = NgramModel.fit(NgramConfig(order=3, smoothing=smoothing), TEXT, 4, unk=C)
        again = NgramModel.from_tensors(load(save(model.tensors())))
        assert np.array_equal(again.nats(TEXT), model.nats(TEXT))
        assert (again.order, again.vocab_size, again.unk) == (3, 4, C)
        assert again.discounts_estimated == model.discounts_estimated
        assert again.tensors().keys() == model.tensors().keys()


def test_tensors_that_are_no_model_are_refused():
    tensors = fit().tensors()
    with pytest.raises(RegardError, match=r"no n-gram model: 'keys\.2' is missing"):
        NgramModel.from_tensors({name: value for name, value in tensors.items() if name != "keys.2"})
    with pytest.raises(RegardError, match=r"no n-gram model: 'log_probs\.1' is missing"):
        NgramModel.from_tensors({})
    with pytest.raises(RegardError, match="differ in length"):
        NgramModel.from_tensors(tensors | {"keys.2": tensors["keys.2"][1:]})


def test_an_empty_text_is_refused():
    with pytest.raises(RegardError, match="needs at least one token to count; the training text has none"):
        fit(ids=np.zeros(0, np.int64))


def test_ids_outside_the_vocabulary_are_refused():
    with pytest.raises(RegardError, match="between 0 and 3, found 1 to 4"):
        fit(ids=np.array([1, 4]))
    with pytest.raises(RegardError, match="between 0 and 3, found 7 to 7"):
        fit().nats(np.array([7]))
    with pytest.raises(RegardError, match="between 0 and 3, found -1 to -1"):
        fit().next_log_probs([-1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": 8}, "order must be between 1 and 7, not 8"),
        ({"smoothing": "kneser-nay"}, "Did you mean 'kneser-ney'"),
        ({"k": 0.0}, "k must be at least 1e-09"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_settings_out_of_range_are_refused(given, message):
    with pytest.raises(RegardError, match=message):
        NgramConfig.from_dict(given)


def test_progress_is_told_every_order():
    told: list[tuple[str, int, int | None]] = []
    count_ngrams(TEXT, 3, 4, progress=lambda *news: told.append(news))
    assert told == [("counting n-grams", n, 3) for n in (1, 2, 3)]


def test_sentences_start_at_the_beginning_and_after_each_end():
    assert sentence_starts(TEXT).tolist() == [True, False, False, True, False, False]
    assert sentence_starts(np.zeros(0, np.int64)).tolist() == []


def test_the_trie_spells_its_ngrams_and_finds_them_again():
    levels = count_ngrams(TEXT, order=3, vocab_size=4)
    trie = Trie(4, [level.keys for level in levels[1:]])
    spelled = trie.ngrams(3, slice(None)).tolist()
    assert sorted(spelled) == [[A, B, END], [A, C, END], [4, A, B], [4, A, C]]
    assert [trie.locate(ngram) for ngram in spelled] == [0, 1, 2, 3]
    assert trie.locate([A, B, B]) == trie.locate([B, B, END]) == -1
    rows, words = trie.children(1, A)
    assert words.tolist() == [B, C]
    assert trie.ngrams(2, rows).tolist() == [[A, B], [A, C]]


def test_hash_tables_never_change_a_score(monkeypatch):
    rng = np.random.default_rng(0)
    model = fit(order=4, ids=rng.integers(0, 4, 300))
    ids = rng.integers(0, 4, 120)
    assert model.trie.searches
    searched, matched = model.nats(ids), model.matched_orders(ids)
    monkeypatch.setattr(regard.count.trie, "SEARCHES_BEFORE_TABLES", 0)
    model.nats(ids)  # pays for the tables
    assert not model.trie.searches
    assert np.array_equal(model.nats(ids), searched)
    assert np.array_equal(model.matched_orders(ids), matched)


def test_levels_without_ngrams_have_hash_tables_too(monkeypatch):
    monkeypatch.setattr(regard.count.trie, "SEARCHES_BEFORE_TABLES", 0)
    model = fit(order=7)  # longer than every sentence
    first = model.nats(TEXT)
    assert not model.trie.searches
    assert np.array_equal(model.nats(TEXT), first)


def test_words_are_numbered_as_they_come_and_found_again():
    ids, words = number_words(["b <unk> b", "", "</s> é"])
    assert words == ["</s>", "<unk>", "b", "</s>", "é"]  # the second is a word of the text that happens to look so
    assert ids.tolist() == [2, 1, 2, 0, 0, 3, 4, 0]
    assert find_words(["é new b"], words).tolist() == [4, 1, 2, 0]
    assert number_words([])[0].tolist() == []
