"""Gradients of predictions on one text, by distance and by layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_training import SIZES, VOCAB_SIZE

from regard.layers.taps import Taps
from regard.lens.gradients import TextGradients, input_norms, measure_gradients
from regard.models.table import build_model, model_config

SEEN = torch.tensor([0, 3, 1, 4, 1, 5, 9, 2])


def tiny(name: str) -> torch.nn.Module:
    torch.manual_seed(5)
    return build_model(name, model_config(name, SIZES[name]), VOCAB_SIZE).double().eval()


@pytest.mark.parametrize("name", ["rnn", "lstm", "rnn-attention", "pointer", "transformer"])
def test_copies_of_a_text_give_the_gradients_that_each_prediction_has_alone(name: str) -> None:
    model = tiny(name)
    found = measure_gradients(model, SEEN)
    assert found.targets == (0, 1, 2, 3, 4, 5, 6)
    for row, t in zip(found.norms, found.targets, strict=True):
        alone = input_norms(model, SEEN[None, : t + 2])[0].numpy()
        np.testing.assert_allclose(row[: t + 1], alone, rtol=0, atol=1e-10)
        assert not row[t + 1 :].any()  # what comes later has no part in it


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_gradients_at_layers_and_weights_are_those_of_a_pass_back(name: str) -> None:
    model = tiny(name)
    found = measure_gradients(model, SEEN)
    assert all(p.grad is None for p in model.parameters())  # nothing is left on the model
    record = Taps()
    h, _ = model.hidden(SEEN[None, :-1], None, record)
    model.nats_each(h, SEEN[None, 1:]).mean().backward()
    for label, tap in (("embedding", "embedding"), ("layer 1", "layers.0.hidden"), ("layer 2", "layers.1.hidden")):
        expected = record.gradient(tap).square().sum(-1).mean().sqrt().item()
        assert dict(found.layers)[label] == pytest.approx(expected, abs=1e-12)
    squares = sum(p.grad.square().sum().item() for p in model.parameters() if p.grad is not None)
    assert sum(value**2 for _, value in found.weights) == pytest.approx(squares, rel=1e-10)


def test_the_mean_by_distance_leaves_out_the_start_mark_and_what_few_reach() -> None:
    norms = np.array([[9.0, 0, 0], [9, 4, 0], [9, 2, 6]])
    found = TextGradients((0, 1, 2), norms, (), ())
    # 0 back: 4 and 6; 1 back: 2, from one prediction only
    assert found.by_distance(n_least=1).tolist() == [5.0, 2.0]
    assert found.by_distance(n_least=2).tolist() == [5.0]


def test_of_a_long_text_some_predictions_are_taken_and_the_last_is_one() -> None:
    found = measure_gradients(tiny("rnn"), SEEN, n_targets=3)
    assert found.targets == (0, 3, 6)
