"""Attributions of models that are made by hand, where each number can be worked out."""

import math

import numpy as np
import pytest
import torch
from tiny_prediction import E, look_and_answer, predict_by_hand
from torch import Tensor

from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.lens.attribution import attribute, integrate_gradients, measure_gradients

WORDS = [1, 3, 4]
P_YES = 1 / (1 + math.exp(-3.5))  # the first numbers of the three words add up to 1 + 2 + 0.5


def add_up(x: Tensor, taps: Taps | None) -> Tensor:
    """yes has the sum of the words' first numbers, no has 0."""
    return torch.stack([x[0, :, 0].sum(), torch.zeros_like(x[0, 0, 0])])


def test_gradient_times_input_of_a_sum_is_each_words_share() -> None:
    """d log P(yes) / d x_i1 = 1 - P(yes), times x_i1."""
    found = attribute(predict_by_hand(WORDS, add_up), "gradient-input")
    np.testing.assert_allclose(found.scores, (1 - P_YES) * np.array([1, 2, 0.5]), rtol=0, atol=1e-12)
    assert found.value == pytest.approx(math.log(P_YES))
    assert [name for name, _ in found.rank()] == ["w3", "w1", "w4"]
    np.testing.assert_allclose(measure_gradients(found.prediction), [1 - P_YES] * 3, rtol=0, atol=1e-12)


def test_integrated_gradients_add_up_to_the_difference_of_outputs() -> None:
    """From nothing, where P(yes) is one half, to here; a sum shares it out in proportion."""
    found = attribute(predict_by_hand(WORDS, add_up), "integrated-gradients")
    whole = math.log(P_YES) - math.log(0.5)
    assert found.baseline == pytest.approx(math.log(0.5))
    np.testing.assert_allclose(found.scores, whole * np.array([1, 2, 0.5]) / 3.5, rtol=0, atol=1e-10)
    assert found.gap is not None
    assert abs(found.gap) < 1e-10


def test_another_baseline_is_where_the_integral_begins() -> None:
    prediction = predict_by_hand(WORDS, add_up)
    same = {"embedding": E[WORDS][None].clone()}
    same["embedding"][0, 1] = 0  # only the second word is missing from it
    found = integrate_gradients(prediction, baseline=same)
    assert found.scores[[0, 2]].tolist() == [0, 0]
    assert found.scores[1] == pytest.approx(math.log(P_YES) - math.log(1 / (1 + math.exp(-1.5))), abs=1e-10)


def test_erasure_is_what_is_lost_without_a_word() -> None:
    found = attribute(predict_by_hand(WORDS, add_up), "erasure")
    without = [math.log(1 / (1 + math.exp(-(3.5 - x)))) for x in (1, 2, 0.5)]
    np.testing.assert_allclose(found.scores, math.log(P_YES) - np.array(without), rtol=0, atol=1e-12)
    marks = attribute(predict_by_hand(WORDS, add_up, can_erase=False), "erasure")
    assert marks.scores.tolist() == [0, 0, 0]  # marks are not erased


def test_a_word_that_is_not_looked_at_has_no_share() -> None:
    answer = look_and_answer([0.0, -math.inf, 0.0], lambda x: x)
    for method in ("gradient-input", "integrated-gradients"):
        assert attribute(predict_by_hand(WORDS, answer), method).scores[1] == 0


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("gradient-imput", {}, r"no method 'gradient-imput'\. Did you mean 'gradient-input'\?"),
        ("integrated-gradients", {"n_steps": 0}, "n_steps is a whole number from 1 on, not 0"),
    ],
)
def test_what_is_no_method_is_refused(method: str, settings: dict[str, int], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        attribute(predict_by_hand(WORDS, add_up), method, **settings)
