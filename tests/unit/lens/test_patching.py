"""Replacing what a model computed moves its prediction by as much as can be worked out."""

import math

import numpy as np
import pytest
import torch
from tiny_prediction import look_and_answer, predict_by_hand

from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.lens.patching import look_evenly, patch, set_row, take_from, take_mean, zero_head, zero_units
from regard.lens.prediction import Prediction, predict_next
from regard.lens.trace import Trace
from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TEXT = "the cat sat\nthe dog sat\n"


def log_yes(z: float) -> float:
    return -math.log1p(math.exp(-z))


def test_a_row_of_attention_that_is_set_decides_the_output() -> None:
    """Looking at the word -1 alone, yes has the score -1; it had (1 - 1 + 2)/3 by looking evenly."""
    prediction = predict_by_hand([1, 2, 3], look_and_answer([0.0, 0.0, 0.0], lambda x: x))
    effect = patch(prediction, set_row("pool.attention", 0, [0.0, 1.0, 0.0]))
    assert effect.before == pytest.approx(log_yes(2 / 3))
    assert effect.after == pytest.approx(log_yes(-1))
    assert (effect.best_before, effect.best_after) == ("yes", "no")
    assert effect.total_variation == pytest.approx(math.exp(log_yes(2 / 3)) - math.exp(log_yes(-1)))
    assert "'no' and no longer 'yes'" in str(effect)
    with pytest.raises(RegardError, match="has 3 weights"):
        patch(prediction, set_row("pool.attention", 0, [1.0]))


def test_looking_evenly_spares_what_is_not_looked_at() -> None:
    prediction = predict_by_hand([1, 2, 3], look_and_answer([0.0, -math.inf, 5.0], lambda x: x))
    assert patch(prediction, look_evenly("pool.attention")).after == pytest.approx(log_yes((1 + 2) / 2))


def language_model(name: str) -> Prediction:
    torch.manual_seed(0)
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT])
    config = {
        "lstm": LSTMConfig(d_model=8, n_layers=1),
        "transformer": TransformerConfig(d_model=8, n_layers=1, n_heads=2, max_context=8),
    }[name]
    model = build_model(name, config, words.vocab_size).double()
    return predict_next(model, words, "the cat sat")


def test_what_a_tap_does_not_have_cannot_be_replaced() -> None:
    prediction = predict_by_hand([1, 2, 3], look_and_answer([0.0, 0.0, 0.0], lambda x: x))
    with pytest.raises(RegardError, match=r"There is no unit 2: 'embedding' has 2, counted from 0"):
        patch(prediction, zero_units("embedding", 0, 2))
    with pytest.raises(RegardError, match=r"There is no row 1: 'pool.attention' has 1, counted from 0"):
        patch(prediction, set_row("pool.attention", 1, [0.0, 1.0, 0.0]))
    with pytest.raises(RegardError, match=r"There is no head 4: 'pool.attention' has 1, counted from 0"):
        patch(prediction, set_row("pool.attention", 0, [0.0, 1.0, 0.0], head=4))


def test_without_a_head_the_others_alone_are_left() -> None:
    prediction = language_model("transformer")
    record = prediction.record()
    z = record["layers.0.z"][0].clone()
    z[1] = 0
    by_hand = prediction.log_probs({"layers.0.z": z})
    without = prediction.log_probs(zero_head(0, 1))
    np.testing.assert_allclose(without, by_hand, rtol=0, atol=0)
    assert np.abs(without - prediction.log_probs()).max() > 1e-6
    with pytest.raises(RegardError, match=r"There is no head 2: 'layers\.0\.z' has 2"):
        prediction.log_probs(zero_head(0, 2))


def test_a_unit_that_is_zero_stays_so_and_the_mean_is_the_same_everywhere() -> None:
    prediction = language_model("lstm")
    taps = Taps(zero_units("layers.0.cell", 3))
    prediction.compute(taps)
    assert taps["layers.0.cell"][0, :, 3].abs().max() == 0
    even = Taps(take_mean("hidden"))
    prediction.compute(even)
    assert torch.equal(even["hidden"][0, 0], even["hidden"][0, -1])


def test_all_states_of_another_text_make_its_prediction() -> None:
    first = language_model("transformer")
    record = first.record()
    other = Trace((), np.zeros(0), {"hidden": -record["hidden"][0].numpy()})
    found = first.log_probs(take_from(other, "hidden"))
    negated = first.log_probs({"hidden": lambda h: -h})
    np.testing.assert_allclose(found, negated, rtol=0, atol=1e-12)
