import math
from dataclasses import dataclass

import numpy as np
import pytest

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.models.gradient_next_token import as_next_token
from regard.score.evaluate import Evaluation, evaluate


@dataclass
class Stream:
    ids: np.ndarray
    n_bytes: int
    n_words: int

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> np.ndarray:
        return self.ids[part]


UNIGRAM = as_next_token(NgramModel.fit(NgramConfig(order=1, smoothing="mle"), np.array([1, 0, 2, 0]), 3, None))


def test_a_fair_coin_costs_a_bit_a_toss() -> None:
    tosses = Evaluation(nats=8 * math.log(2), n_tokens=8, n_bytes=16, n_words=4)
    assert tosses.nats_per_token == math.log(2)
    assert tosses.perplexity == 2.0
    assert tosses.perplexity_per_word == 4.0
    assert tosses.bits_per_byte == 0.5


def test_evaluation_sums_over_the_text() -> None:
    result = evaluate(UNIGRAM, Stream(np.array([0, 1, 2, 0]), n_bytes=6, n_words=2))  # probabilities 1/2 1/4 1/4 1/2
    assert abs(result.nats - 6 * math.log(2)) < 1e-12
    assert (result.n_tokens, result.n_bytes, result.n_words) == (4, 6, 2)
    assert abs(result.bits_per_byte - 1.0) < 1e-12
    assert abs(result.perplexity_per_word - 8.0) < 1e-11


def test_a_text_that_the_model_rules_out_has_infinite_perplexity() -> None:
    assert Evaluation(nats=math.inf, n_tokens=1, n_bytes=1, n_words=1).perplexity == math.inf
    assert Evaluation(nats=1e6, n_tokens=1, n_bytes=1, n_words=1).perplexity_per_word == math.inf


def test_nothing_to_evaluate_on_is_said() -> None:
    with pytest.raises(RegardError, match="There is nothing to evaluate on: the text has no tokens"):
        evaluate(UNIGRAM, Stream(np.zeros(0, dtype=np.int64), 0, 0))


def test_an_evaluation_can_be_written_down() -> None:
    written = Evaluation(nats=2.0, n_tokens=2, n_bytes=4, n_words=1).to_dict()
    assert written["nats_per_token"] == 1.0
    assert set(written) >= {"perplexity", "perplexity_per_word", "bits_per_byte", "nats", "n_tokens", "n_bytes"}
