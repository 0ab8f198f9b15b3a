"""Faithfulness of models that are made by hand, where it is known whether attention explains them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_prediction import look_and_answer, predict_by_hand
from torch import Tensor

from regard.errors import RegardError
from regard.layers.taps import Taps, keep
from regard.lens.faithfulness import divergence, measure_faithfulness
from regard.lens.prediction import Look, Prediction
from regard.score.rank_agreement import kendall_tau

WORDS = [2, 2, 3, 2, 2]
SURE = [0.0, 1.0, 6.0, 0.5, 1.5]
"""Nearly all of the weight is on the third word, w3."""


def only_what_is_looked_at() -> Prediction:
    """Word 3 says yes, loudly, and every other word says no: what is looked at decides."""
    return predict_by_hand(WORDS, look_and_answer(SURE, lambda x: 6 * x))


def ignores_attention() -> Prediction:
    """All values are the mean of the words: wherever it looks, it sees the same."""
    return predict_by_hand(WORDS, look_and_answer(SURE, lambda x: x.mean(dim=1, keepdim=True).expand_as(x)))


def test_attention_explains_what_depends_on_the_attended_word_alone() -> None:
    found = measure_faithfulness(only_what_is_looked_at(), n_permutations=30)
    assert int(found.attention.argmax()) == 2
    assert found.depends
    assert found.moved_permuted > 0.5
    assert found.moved_uniform > 0.5
    assert found.tau_gradients > 0.4
    assert found.tau_erasure > 0.4
    assert found.pushed < 0.3  # looking elsewhere would say no
    assert found.moved_pushed <= found.epsilon
    assert found.verdict.startswith("Attention explains this prediction")


def test_attention_explains_nothing_where_the_output_ignores_it() -> None:
    found = measure_faithfulness(ignores_attention(), n_permutations=10)
    assert found.moved_permuted == pytest.approx(0, abs=1e-12)
    assert found.moved_uniform == pytest.approx(0, abs=1e-12)
    assert found.pushed > 0.9  # it may look anywhere else
    assert not found.depends
    assert "hardly depends on where the model looks" in found.verdict


def test_words_that_say_the_same_can_be_looked_at_in_turn() -> None:
    """Two words 3 are alike: looking at the other gives the same output, though the output depends on looking there."""
    prediction = predict_by_hand([2, 3, 2, 3, 2], look_and_answer([0.0, 6.0, 0.0, 0.0, 0.0], lambda x: 6 * x))
    found = measure_faithfulness(prediction, n_permutations=30, n_steps=120)
    assert found.depends
    assert found.has_other
    assert "looks elsewhere gives the same output" in found.verdict


def test_several_layers_are_put_together_by_rollout() -> None:
    """Layer 1 looks from the last word at the first, layer 0 from the first at the second: the second explains it."""
    first = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    second = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)

    def answer(x: Tensor, taps: Taps | None) -> Tensor:
        for layer, A in enumerate((first, second)):
            x = keep(taps, f"layers.{layer}.attention", A[None, None])[:, 0] @ x
        return torch.stack([x[0, 2, 0], torch.zeros_like(x[0, 2, 0])])

    prediction = replace(predict_by_hand([1, 3, 2], answer), looks=(Look("layers.", ".attention", 2),))
    found = measure_faithfulness(prediction, n_permutations=2, n_steps=2)
    # R = (A_1 + I)/2 (A_0 + I)/2: from the last word, 1/4 + 1/4 + 1/2 x (1/2 + 1/2) is shared out as below
    np.testing.assert_allclose(found.attention, [0.25, 0.25, 0.5], rtol=0, atol=1e-12)
    assert set(found.by_layer) == set(found.tau_by_layer) == {"layers.0.attention", "layers.1.attention"}
    assert found.erasure[[0, 2]].tolist() == [0, 0]  # only the second word is heard of
    assert found.erasure[1] > 0.1


def test_what_does_not_attend_or_does_not_choose_is_refused() -> None:
    blind = predict_by_hand(WORDS, lambda x, taps: x[0, :2, 0])
    with pytest.raises(RegardError, match="attends to nothing"):
        measure_faithfulness(blind)
    with pytest.raises(RegardError, match="A rating is a number"):
        measure_faithfulness(replace(blind, is_number=True))


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 2], [1, 2, 3], 2 / math.sqrt(2 * 3)),
    ],
)
def test_kendalls_tau_counts_pairs(x: list[float], y: list[float], expected: float) -> None:
    assert kendall_tau(np.array(x, dtype=float), np.array(y, dtype=float)) == pytest.approx(expected)


def test_a_constant_has_no_order_and_divergence_is_at_most_ln_2() -> None:
    assert math.isnan(kendall_tau(np.ones(3), np.arange(3.0)))
    assert divergence([0.5, 0.5], [1.0, 0.0]) == pytest.approx(
        0.5 * (math.log(0.5 / 0.75) / 2 + math.log(0.5 / 0.25) / 2 + math.log(1 / 0.75))
    )


def test_a_push_that_exists_is_found_where_every_step_moves_the_output_far() -> None:
    """Words 1 and 2 say 20 and -20: weights may move among equal words, and nearly any other change says all."""
    prediction = predict_by_hand([1, 2, 1, 2, 1, 2], look_and_answer([0.0] * 6, lambda x: 20 * x))
    found = measure_faithfulness(prediction, n_permutations=2)
    assert 0 < found.moved_pushed <= found.epsilon
    assert found.pushed > 0.1


def test_too_few_words_are_called_too_few() -> None:
    found = measure_faithfulness(
        predict_by_hand([2, 3, 2], look_and_answer([0.0, 6.0, 0.0], lambda x: 6 * x)), n_permutations=20, n_steps=2
    )
    assert found.depends
    assert found.verdict.startswith("There are too few words to tell (3)")


def test_the_verdict_says_with_which_explanation_attention_agrees() -> None:
    found = replace(measure_faithfulness(only_what_is_looked_at(), n_permutations=2, n_steps=2), pushed=0.0)
    found = replace(found, moved_uniform=0.5, tau_gradients=0.1, tau_erasure=0.57)
    assert "it agrees with erasure (τ = 0.57), not with gradients (τ = 0.10)" in found.verdict
    assert "order the words otherwise" in replace(found, tau_erasure=-0.5).verdict
