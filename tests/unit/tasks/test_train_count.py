from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_training import tiny_text

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.tasks.ngram_counts import _within_seconds, count_ngrams, list_lengths
from regard.tasks.text_objective import first_tokens
from regard.training.config import TrainConfig
from regard.training.metrics import read_metrics

BIGRAM = NgramConfig(order=2)


def test_the_saved_model_is_the_one_counted_on_the_whole_text(tmp_path: Path) -> None:
    text = tiny_text(n_tokens=4000)
    result = count_ngrams(BIGRAM, text, tmp_path, train=TrainConfig())
    saved = NgramModel.from_tensors(load_file(tmp_path / "model.safetensors"))
    fresh = NgramModel.fit(BIGRAM, text.train.tokens, 11, None)
    ids = text.valid[0:100]
    assert np.array_equal(saved.nats(ids), fresh.nats(ids))
    assert (result.reason, result.tokens, result.flops) == ("end of text", 4000, 0)
    assert result.nats_per_token == pytest.approx(fresh.nats(text.valid[0:120]).mean(), abs=1e-12)


def test_its_learning_curve_grows_with_the_text(tmp_path: Path) -> None:
    count_ngrams(BIGRAM, tiny_text(n_tokens=4000), tmp_path, train=TrainConfig())
    lines = read_metrics(tmp_path, "valid")
    assert [line["tokens"] for line in lines] == [1000, 2000, 4000]
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert lines[-1]["nats_per_token"] < lines[0]["nats_per_token"]
    assert all(line["n_ngrams"] > 0 and line["seconds"] > 0 for line in lines)


def test_fewer_tokens_are_counted_where_the_budget_says_so(tmp_path: Path) -> None:
    text = tiny_text(n_tokens=4000)
    assert count_ngrams(BIGRAM, text, tmp_path, train=TrainConfig(max_tokens=1500)).tokens == 1500
    assert [line["tokens"] for line in read_metrics(tmp_path)] == [1500]  # a second run writes its own curve
    result = count_ngrams(BIGRAM, text, tmp_path, train=TrainConfig(max_epochs=0.5))
    assert (result.tokens, result.reason) == (2000, "max_epochs")


def test_a_budget_in_seconds_shortens_the_text_to_what_can_be_fitted() -> None:
    assert _within_seconds(8000, (4000, 1.0), max_seconds=None) == 8000
    assert _within_seconds(8000, (4000, 1.0), max_seconds=3.0) == 8000
    assert _within_seconds(8000, (4000, 1.0), max_seconds=1.5) == 6000
    assert _within_seconds(8000, (4000, 1.0), max_seconds=0.1) == 4000
    assert _within_seconds(1000, (0, 0.0), max_seconds=0.1) == 1000


def test_a_fit_that_is_too_slow_ends_with_the_budget(tmp_path: Path) -> None:
    result = count_ngrams(BIGRAM, tiny_text(n_tokens=4000), tmp_path, train=TrainConfig(max_seconds=1e-9))
    assert (result.reason, result.tokens) == ("max_seconds", 1000)


def test_without_a_validation_text_it_is_counted_all_the_same(tmp_path: Path) -> None:
    result = count_ngrams(BIGRAM, tiny_text(n_valid=0), tmp_path, train=TrainConfig())
    assert result.nats_per_token is None
    assert (tmp_path / "model.safetensors").exists()


def test_beginnings_double_and_end_with_the_whole() -> None:
    assert list_lengths(500) == [500]
    assert list_lengths(9000) == [1125, 2250, 4500, 9000]
    assert len(list_lengths(10**9)) == 8


def test_a_slice_of_a_stream_has_its_share_of_bytes_and_words() -> None:
    stream = tiny_text(n_tokens=600).train  # two bytes a token, a word in two tokens
    part = first_tokens(stream, 100)
    assert (len(part), part.n_bytes, part.n_words) == (100, 200, 50)
    assert first_tokens(stream, None) is stream
    assert first_tokens(stream, 600) is stream
