from __future__ import annotations

import math

import pytest
import torch

from regard.models import glove
from regard.models.word_vectors_config import GloVeConfig


def test_weights_follow_the_formula() -> None:
    found = glove.weigh(torch.tensor([1.0, 50.0, 100.0, 400.0]), x_max=100.0, power=0.75)
    assert found.tolist() == pytest.approx([0.01**0.75, 0.5**0.75, 1.0, 1.0], rel=1e-6)


def test_an_update_is_adagrad_on_the_loss() -> None:
    """Against autograd of Σ f(x) e² / 2: the authors' program leaves the 2 of the square to the rate."""
    config = GloVeConfig(d_model=3, x_max=10.0)
    model = glove.GloVe.create(config, 5, seed=0).to(torch.device("cpu"))
    for name, tensor in model.tensors().items():
        setattr(model, name, tensor.double())
    model.words.mul_(3), model.contexts.mul_(3)
    i, j = torch.tensor([2, 3]), torch.tensor([4, 2])
    x = torch.tensor([2.0, 40.0], dtype=torch.float64)
    words, contexts = (table.clone().requires_grad_() for table in (model.words, model.contexts))
    loss = torch.zeros((), dtype=torch.float64)
    for a, b, count in zip(i.tolist(), j.tolist(), x.tolist(), strict=True):
        error = words[a, :3] @ contexts[b, :3] + words[a, 3] + contexts[b, 3] - math.log(count)
        loss = loss + min(1.0, (count / 10.0) ** 0.75) * error**2
    slopes = torch.autograd.grad(loss / 2, (words, contexts))
    found = glove.update(model, config, i, j, x, lr=0.05)
    assert found.item() == pytest.approx(loss.item(), rel=1e-12)
    for now, before, slope in zip((model.words, model.contexts), (words, contexts), slopes, strict=True):
        torch.testing.assert_close(now, before - 0.05 * slope / (1 + slope**2).sqrt(), rtol=0, atol=1e-14)


def test_a_small_matrix_is_fitted() -> None:
    config, random = GloVeConfig(d_model=6, x_max=1.0), torch.Generator().manual_seed(0)
    model = glove.GloVe.create(config, 8, seed=0)
    i, j = (each.flatten() for each in torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij"))
    x = torch.rand(64, generator=random) * 20 + 1
    first = glove.update(model, config, i, j, x, 0.1)
    for _ in range(400):
        last = glove.update(model, config, i, j, x, 0.1)
    assert last < 0.02 * first
