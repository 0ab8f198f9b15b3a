"""Integrated gradients and gradient times input equal those of captum on a Transformer, an LSTM and a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard.layers.taps import Taps
from regard.lens.attribution import attribute, read_vectors
from regard.lens.prediction import Prediction, predict_next
from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

captum = pytest.importorskip("captum.attr", reason="captum, the oracle, is not installed")

TEXT = "the cat sat on the mat\nthe dog sat\n"


@pytest.fixture(params=["lstm", "transformer"])
def prediction(request: pytest.FixtureRequest) -> Prediction:
    torch.manual_seed(0)
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT])
    config: Any = {
        "lstm": LSTMConfig(d_model=8, n_layers=2),
        "transformer": TransformerConfig(d_model=8, n_layers=2, n_heads=2, max_context=16),
    }[request.param]
    return predict_next(build_model(request.param, config, words.vocab_size).double(), words, "the cat sat on the")


def answer_of(prediction: Prediction) -> Any:
    """F of vectors (B, T, D), one after the other, as captum calls it."""

    def answer(vectors: torch.Tensor) -> torch.Tensor:
        rows = [prediction.compute(Taps({"embedding": lambda _, x=x: x[None]})) for x in vectors]
        return torch.stack([row[prediction.target] for row in rows])

    return answer


@pytest.mark.parametrize(("n_steps", "atol"), [(2, 1e-10), (16, 1e-8)])
def test_integrated_gradients_equal_captums(prediction: Prediction, n_steps: int, atol: float) -> None:
    """captum rounds the weights of its points to float32, which only those of two points survive whole."""
    vectors = read_vectors(prediction)["embedding"]
    theirs, gap = captum.IntegratedGradients(answer_of(prediction)).attribute(
        vectors, n_steps=n_steps, method="gausslegendre", return_convergence_delta=True
    )
    ours = attribute(prediction, "integrated-gradients", n_steps=n_steps, n_parts=1)
    np.testing.assert_allclose(ours.scores, theirs[0].sum(dim=-1).detach().numpy(), rtol=0, atol=atol)
    assert ours.gap == pytest.approx(-float(gap), abs=1e-7)  # captum's is in float32


def test_gradient_times_input_equals_captums(prediction: Prediction) -> None:
    vectors = read_vectors(prediction)["embedding"].requires_grad_()
    theirs = captum.InputXGradient(answer_of(prediction)).attribute(vectors)
    ours = attribute(prediction, "gradient-input")
    np.testing.assert_allclose(ours.scores, theirs[0].sum(dim=-1).detach().numpy(), rtol=0, atol=1e-10)
