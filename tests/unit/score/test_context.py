from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.models.gradient_next_token import GradientNextToken
from regard.models.table import build_model, model_config
from regard.score.context import nats_in_context

V, EOS = 11, 0


def next_token(name: str, **settings: object) -> GradientNextToken:
    torch.manual_seed(0)
    model = build_model(name, model_config(name, {"d_model": 8, "n_layers": 1, **settings}), V)
    return GradientNextToken(model.double())


@pytest.fixture
def ids() -> np.ndarray:
    return np.random.default_rng(0).integers(1, V, size=50)


@pytest.mark.parametrize("limit", [2, 7, 8])
def test_a_transformer_within_its_own_limit_is_scored_as_ever(ids: np.ndarray, limit: int) -> None:
    model = next_token("transformer", n_heads=2, max_context=limit)
    assert nats_in_context(model, ids, limit, EOS) == pytest.approx(model.nats(ids), rel=0, abs=1e-12)


@pytest.mark.parametrize(("n", "limit"), [(50, 8), (49, 7), (8, 8), (3, 8), (1, 8)])
def test_a_recurrent_state_does_not_outlive_the_context(ids: np.ndarray, n: int, limit: int) -> None:
    model, stride = next_token("lstm"), limit - limit // 2
    found = nats_in_context(model, ids[:n], limit, EOS)
    text = np.concatenate([[EOS], ids[:n]])
    for i in range(n):
        start = 0 if i < limit else (i - limit) // stride * stride + stride
        alone = model.nats_of_windows(text[None, start : i + 2])[0, -1]
        assert found[i] == pytest.approx(alone, rel=0, abs=1e-12)
        assert i - start < limit


def test_a_limit_beyond_the_text_changes_nothing(ids: np.ndarray) -> None:
    model = next_token("lstm")
    assert nats_in_context(model, ids, 64, EOS) == pytest.approx(model.nats(ids), rel=0, abs=1e-12)
