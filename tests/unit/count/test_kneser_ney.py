"""Modified Kneser-Ney on texts small enough to work by hand."""

import numpy as np
import pytest

from regard.count.config import NgramConfig
from regard.count.counts import count_ngrams
from regard.count.kneser_ney import FALLBACK, adjust_counts, estimate_discounts
from regard.count.ngram import NgramModel

END, A, B, C = range(4)
TEXT = np.array([A, B, END, A, C, END])  # "a b", "a c"


def probabilities(model: NgramModel, context: list[int]) -> list[float]:
    return np.exp(model.next_log_probs(context)).tolist()


def fit(ids: np.ndarray, order: int, vocab_size: int = 4) -> NgramModel:
    return NgramModel.fit(NgramConfig(order=order), ids, vocab_size, unk=None)


def test_bigram_probabilities_are_those_worked_by_hand():
    # Different words seen before a, b, c: 1 each; before </s>: 2. So total = 5, gamma = (3 * 0.5 + 1) / 5 = 1/2 and
    # P(a) = 0.5/5 + 1/2 * 1/4 = 0.225, P(</s>) = 1/5 + 1/8 = 0.325.
    unigram = [0.325, 0.225, 0.225, 0.225]
    model = fit(TEXT, order=2)
    # After a: b and c once each, gamma = (0.5 + 0.5) / 2. After <s>: a twice, gamma = 1/2. After b: </s> once.
    after_a = [0.5 * 0.325, 0.5 * 0.225, 0.25 + 0.5 * 0.225, 0.25 + 0.5 * 0.225]
    after_start = [0.5 * 0.325, 0.5 + 0.5 * 0.225, 0.5 * 0.225, 0.5 * 0.225]
    after_b = [0.5 + 0.5 * 0.325, 0.5 * 0.225, 0.5 * 0.225, 0.5 * 0.225]
    assert np.exp(model.estimate.log_probs[0][:4]) == pytest.approx(unigram, abs=1e-15)
    assert probabilities(model, [A]) == pytest.approx(after_a, abs=1e-15)
    assert probabilities(model, []) == pytest.approx(after_start, abs=1e-15)
    assert probabilities(model, [A, B]) == pytest.approx(after_b, abs=1e-15)


def test_ngrams_after_the_sentence_start_keep_their_counts():
    levels = count_ngrams(TEXT, order=3, vocab_size=4)
    start = 4
    bigrams = {divmod(int(key), 5): int(a) for key, a in zip(levels[1].keys, adjust_counts(levels, 2), strict=True)}
    # <s> a was seen twice; a b and a c once, both only after <s>; b </s> and c </s> only after a.
    assert bigrams == {(start, A): 2, (A, B): 1, (A, C): 1, (B, END): 1, (C, END): 1}
    assert adjust_counts(levels, 1).tolist() == [2, 1, 1, 1, 0]


def test_a_lower_order_counts_words_before_and_not_times_seen():
    # "b" is seen three times, always after "a"; "c" twice, after two different words.
    ids = np.array([A, B, END, A, B, C, END, A, B, END, C, END])
    levels = count_ngrams(ids, order=2, vocab_size=4)
    assert levels[0].counts.tolist() == [4, 3, 3, 2, 0]
    assert adjust_counts(levels, 1).tolist() == [2, 1, 1, 2, 0]


def test_discounts_follow_the_counts_of_counts():
    # t = 6, 3, 2, 1: y = 6 / 12; D = 1 - 2 * 3/6 / 2, 2 - 3 * 2/3 / 2, 3 - 4 * 1/2 / 2.
    a = np.repeat([1, 2, 3, 4, 9], [6, 3, 2, 1, 5])
    D, is_estimated = estimate_discounts(a)
    assert is_estimated
    assert D.tolist() == pytest.approx([0, 0.5, 1.0, 2.0], abs=1e-15)


@pytest.mark.parametrize("t", [(0, 1, 1), (3, 0, 1), (3, 1, 0), (1, 1, 2)], ids=str)
def test_discounts_that_cannot_be_estimated_fall_back(t):
    # (1, 1, 2) gives y = 1/3 and D_2 = 2 - 3 * 2/3 = 0, which would leave nothing for unseen words.
    D, is_estimated = estimate_discounts(np.repeat([1, 2, 3], t))
    assert not is_estimated
    assert D.tolist() == [0, *FALLBACK]


def test_the_model_records_which_orders_fell_back():
    model = fit(TEXT, order=2)
    assert model.discounts_estimated == [False, False]
    assert model.discounts.tolist() == [list(FALLBACK)] * 2


def test_a_text_that_stops_inside_a_sentence_leaves_its_last_context_with_no_opinion():
    model = fit(np.array([A, B, END, A, C]), order=2)
    # c was followed by nothing: its distribution is the unigrams'.
    assert probabilities(model, [A, C]) == pytest.approx(np.exp(model.estimate.log_probs[0][:4]).tolist(), abs=1e-15)


def test_tokens_never_seen_share_what_the_unigrams_gave_up():
    model = fit(TEXT, order=2, vocab_size=6)
    p = np.exp(model.estimate.log_probs[0])
    assert p[4] == p[5] == pytest.approx(0.5 / 6, abs=1e-15)  # gamma = 1/2, V = 6
