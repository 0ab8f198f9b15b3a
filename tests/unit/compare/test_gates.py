"""What makes a comparison doubtful is said in a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_up_comparison import made_up_comparison

from regard.compare.gates import find_warnings
from regard.compare.result import Contender
from regard.data.stream import Stream
from regard.score.blocks import TestText
from regard.score.unigram import unigram_bits_per_byte
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

SETUP = made_up_comparison(("lstm",)).setup


def lstm(**changes: Any) -> Contender:
    return replace(made_up_comparison(("lstm",)).ranked[0], **changes)


def test_a_sound_comparison_has_no_warnings() -> None:
    assert made_up_comparison().warnings == ()


@pytest.mark.parametrize(
    ("n_documents", "words"), [(1, "One text was tested"), (19, "The test text has 19 documents"), (20, ""), (None, "")]
)
def test_few_documents_are_told(n_documents: int | None, words: str) -> None:
    found = find_warnings([lstm()], replace(SETUP, n_documents=n_documents))
    assert [warning.startswith(words) for warning in found] == [True] * bool(words)


def test_a_model_that_does_not_beat_the_unigram_is_told() -> None:
    (warning,) = find_warnings([lstm(baseline=1.5)], SETUP)
    assert warning.startswith("lstm learned nothing from context: it reaches 2.1")
    assert warning.endswith("how often each token stands in the training text reaches 1.500.")
    assert find_warnings([lstm(baseline=None)], SETUP) == ()


def test_a_loss_that_does_not_fall_with_context_is_told() -> None:
    views = lstm().views
    flat = tuple(replace(point, bits_per_byte=2.0) for point in views.positions)
    (warning,) = find_warnings([lstm(views=replace(views, positions=flat))], SETUP)
    assert warning == "lstm gains nothing from more than 16 bytes of context: its loss is no lower after 1024."
    near = tuple(replace(p, bits_per_byte=2.0 if p.n_bytes_before >= 16 else 3.0) for p in views.positions)
    assert find_warnings([lstm(views=replace(views, positions=near))], SETUP)  # a memory of 16 bytes is a window's
    assert not find_warnings([lstm(views=replace(views, positions=near, cells=None))], SETUP)


def test_a_seed_far_behind_its_siblings_is_told() -> None:
    runs = lstm().runs
    odd = (replace(runs[0], score=4.0), *runs[1:])
    (warning,) = find_warnings([lstm(runs=odd)], SETUP)
    assert warning.startswith(
        "Seed 0 of lstm diverged or was unlucky: it ends at 4.000 bits per byte, its siblings at 2."
    )


def test_the_unigram_is_counted_in_the_training_text() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="byte", vocab_size=None), ["ab"])
    train = Stream.of(tokenizer.encode("aaab"))
    # (3 + 1) / (4 + 257) for a and 1 / 261 for the end mark, over one byte
    expected = -np.log2(4 / 261) - np.log2(1 / 261)
    assert tokenizer.vocab_size == 257
    test = TestText(("a",), np.array([0.0, 1.0]))
    assert unigram_bits_per_byte(train, tokenizer, test) == pytest.approx(expected, abs=1e-12)
