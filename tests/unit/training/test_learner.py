from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from text_nats import text_nats
from tiny_training import SIZES, VOCAB_SIZE, objective_on, tiny_model, tiny_text

from regard.data.batches import Batch
from regard.tasks.text_objective import build_batches, choose_context, choose_order
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Learner


def uneven_batches(order: str, B: int = 6, T: int = 8) -> Any:
    """Batches whose rows have anything from no real token to all of them."""

    def at(index: int) -> Batch:
        draw = np.random.default_rng(index)
        inputs, targets = draw.integers(0, VOCAB_SIZE, (2, B, T))
        mask = np.arange(T)[None, :] < np.array([8, 0, 3, 1, 8, 5])[:, None]
        return Batch(inputs=inputs, targets=targets, mask=mask, is_fresh=index == 0 or order == "shuffle")

    return SimpleNamespace(at=at, order=order, n_batch=B, n_context=T, per_epoch=1)


def learn(name: str, n_accumulate: int, n_updates: int = 3) -> tuple[list[float], dict[str, torch.Tensor]]:
    model = tiny_model(name).double()
    batches = uneven_batches("stream" if model.mixer.carries_state else "shuffle")
    learner = Learner(
        model,
        objective_on(model, batches),
        train=TrainConfig(n_batch=6, n_accumulate=n_accumulate, max_steps=3),
        optimizer=OptimizerConfig(name="sgd", max_grad_norm=0.5),
        runtime=RuntimeConfig(),
    )
    losses = [learner.update(i, lr=0.5).nats_per_token for i in range(n_updates)]
    return losses, {name: p.detach() for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("n_accumulate", [2, 4, 6])
def test_a_batch_in_parts_is_the_batch_in_one_piece_whatever_the_masks(name: str, n_accumulate: int) -> None:
    losses, weights = learn(name, 1)
    part_losses, part_weights = learn(name, n_accumulate)
    assert part_losses == pytest.approx(losses, rel=0, abs=1e-10)
    for key, value in weights.items():
        assert torch.allclose(part_weights[key], value, rtol=0, atol=1e-10), key


def test_the_loss_is_a_mean_over_real_tokens() -> None:
    model = tiny_model().double()
    batches = uneven_batches("stream")
    config = TrainConfig(n_batch=6, max_steps=1)
    learner = Learner(
        model, objective_on(model, batches), train=config, optimizer=OptimizerConfig(), runtime=RuntimeConfig()
    )
    batch = batches.at(0)
    logits, _ = model(torch.from_numpy(batch.inputs))
    nats = -logits.log_softmax(-1).gather(2, torch.from_numpy(batch.targets)[..., None]).squeeze(2).detach().numpy()
    update = learner.update(0, lr=0.0)
    assert update.n_tokens == 25
    assert update.nats_per_token == pytest.approx(nats[batch.mask].mean(), abs=1e-12)


def test_state_is_carried_within_an_epoch_and_dropped_where_a_batch_is_fresh() -> None:
    model = tiny_model("lstm")
    batches = build_batches(model, tiny_text().train, TrainConfig(n_batch=4, n_context=8, max_steps=1), seed=0)
    seen: list[bool] = []
    learner = Learner(
        model,
        objective_on(model, batches),
        train=TrainConfig(n_batch=4, max_steps=1),
        optimizer=OptimizerConfig(),
        runtime=RuntimeConfig(),
    )
    hidden = learner.body

    def watched(ids: torch.Tensor, state: Any) -> Any:
        # Never None, then a tuple: torch.compile would make a graph of each.
        seen.append(any(bool(part.any()) for layer in state for part in layer))
        return hidden(ids, state)

    learner.body = watched
    for index in range(batches.per_epoch + 2):
        learner.update(index, lr=0.0)
    assert seen == [False] + [True] * (batches.per_epoch - 1) + [False, True]


def test_the_gradient_stops_at_the_window_but_the_values_go_on() -> None:
    model = tiny_model("lstm")
    batches = uneven_batches("stream")
    train = TrainConfig(n_batch=6, max_steps=1)
    learner = Learner(
        model, objective_on(model, batches), train=train, optimizer=OptimizerConfig(), runtime=RuntimeConfig()
    )
    learner.update(0, lr=0.0)
    ((h, c), _) = learner.carried[0]
    assert not h.requires_grad
    assert not c.requires_grad
    batch = batches.at(0)
    _, _, expected = text_nats(model, *(torch.from_numpy(a) for a in (batch.inputs, batch.targets, batch.mask)))
    assert torch.equal(h, expected[0][0])


def test_models_that_carry_state_read_in_order_and_others_in_windows() -> None:
    assert choose_order(tiny_model("lstm"), TrainConfig()) == "stream"
    assert choose_order(tiny_model("transformer"), TrainConfig()) == "shuffle"
    assert choose_order(tiny_model("transformer"), TrainConfig(order="stream")) == "stream"
    assert choose_context(tiny_model("transformer"), TrainConfig()) == 8
    assert choose_context(tiny_model("lstm"), TrainConfig()) == 64
    assert choose_context(tiny_model("lstm"), TrainConfig(n_context=5)) == 5
