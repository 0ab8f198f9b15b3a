from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.errors import RegardError
from regard.training.config import OptimizerConfig, TrainConfig
from regard.training.optimizer import (
    build_optimizer,
    clip_gradients,
    highest_rate,
    optimizer_tensors,
    restore_optimizer,
    set_rate,
)


def layer(value: float = 1.0) -> nn.Linear:
    made = nn.Linear(2, 2).double()
    for parameter in made.parameters():
        nn.init.constant_(parameter, value)
        parameter.grad = torch.zeros_like(parameter)
    return made


def test_only_matrices_decay() -> None:
    model = layer()
    optimizer = build_optimizer(model.named_parameters(), OptimizerConfig(weight_decay=0.5))
    set_rate(optimizer, 0.1)
    optimizer.step()  # with no gradient only the decay moves: w (1 - 0.1 · 0.5)
    assert model.weight.flatten().tolist() == pytest.approx([0.95] * 4, abs=1e-15)
    assert model.bias.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_vectors_decay_too_where_that_is_asked_for(name: str) -> None:
    model = layer()
    config = OptimizerConfig(name=name, weight_decay=0.5, decays_vectors=True)
    optimizer = build_optimizer(model.named_parameters(), config)
    set_rate(optimizer, 0.1)
    optimizer.step()
    assert model.weight.flatten().tolist() == pytest.approx([0.95] * 4, abs=1e-15)
    assert model.bias.tolist() == pytest.approx([0.95] * 2, abs=1e-15)


def test_decay_is_a_tenth_for_adamw_and_nothing_for_sgd_unless_said() -> None:
    for name, decay in (("adamw", 0.1), ("sgd", 0.0)):
        optimizer = build_optimizer(layer().named_parameters(), OptimizerConfig(name=name))
        assert [g["weight_decay"] for g in optimizer.param_groups] == [decay, 0.0]


def test_sgd_follows_the_gradient() -> None:
    model = layer()
    model.weight.grad = torch.full_like(model.weight, 2.0)
    optimizer = build_optimizer(model.named_parameters(), OptimizerConfig(name="sgd"))
    set_rate(optimizer, 0.25)
    optimizer.step()
    assert model.weight.flatten().tolist() == [0.5] * 4


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_the_fused_update_is_the_plain_one(name: str) -> None:
    results = []
    for is_fused in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(5, 3).double()
        optimizer = build_optimizer(
            model.named_parameters(), OptimizerConfig(name=name, is_fused=is_fused, momentum=0.9, weight_decay=0.1)
        )
        set_rate(optimizer, 0.01)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(2, 5, dtype=torch.float64)).square().sum().backward()
            optimizer.step()
        results.append(model.weight.detach().clone())
    assert torch.allclose(results[0], results[1], rtol=0, atol=1e-12)


def test_a_long_gradient_is_scaled_to_the_limit_and_its_length_told() -> None:
    model = layer()
    model.weight.grad, model.bias.grad = torch.full_like(model.weight, 3.0), torch.full_like(model.bias, 4.0)
    length = (4 * 9 + 2 * 16) ** 0.5
    assert float(clip_gradients(model.parameters(), None)) == pytest.approx(length, abs=1e-12)
    assert float(clip_gradients(model.parameters(), 1.0)) == pytest.approx(length, abs=1e-12)
    assert model.weight.grad[0, 0].item() == pytest.approx(3 / length, rel=1e-6)
    assert float(clip_gradients(model.parameters(), 2.0)) == pytest.approx(1.0, rel=1e-6)
    assert model.weight.grad[0, 0].item() == pytest.approx(3 / length, rel=1e-6)  # short ones are left alone


@pytest.mark.parametrize(
    "config", [OptimizerConfig(), OptimizerConfig(name="sgd", momentum=0.9), OptimizerConfig(is_fused=False)]
)
def test_the_state_survives_as_named_tensors(config: OptimizerConfig) -> None:
    def step(model: nn.Linear, optimizer: torch.optim.Optimizer) -> None:
        set_rate(optimizer, 0.1)
        optimizer.zero_grad()
        model(torch.ones(1, 2, dtype=torch.float64)).square().sum().backward()
        optimizer.step()

    model = layer(0.5)
    optimizer = build_optimizer(model.named_parameters(), config)
    step(model, optimizer)
    tensors = {
        name: value.clone() for name, value in optimizer_tensors(optimizer, list(model.named_parameters())).items()
    }
    slots = {"exp_avg", "exp_avg_sq", "step"} if config.name == "adamw" else {"momentum_buffer"}
    assert set(tensors) == {f"{name}/{slot}" for name in ("weight", "bias") for slot in slots}

    copy = layer()
    copy.load_state_dict(model.state_dict())
    other = build_optimizer(copy.named_parameters(), config)
    restore_optimizer(other, list(copy.named_parameters()), tensors)
    step(model, optimizer)
    step(copy, other)
    assert torch.equal(model.weight, copy.weight)
    assert torch.equal(model.bias, copy.bias)


def test_state_of_another_model_is_refused() -> None:
    model = layer()
    optimizer = build_optimizer(model.named_parameters(), OptimizerConfig())
    with pytest.raises(RegardError, match="The saved optimiser state has 'gate', which this model has not"):
        restore_optimizer(optimizer, list(model.named_parameters()), {"gate/exp_avg": torch.zeros(2)})


def test_a_given_rate_wins_over_the_defaults() -> None:
    assert highest_rate(OptimizerConfig(lr=0.7), carries_state=True) == 0.7
    defaults = [highest_rate(OptimizerConfig(name=n), carries_state=c) for n in ("adamw", "sgd") for c in (True, False)]
    assert defaults == [5e-3, 1e-3, 5.0, 0.5]


def test_a_complete_config_says_what_null_means_and_trains_the_same() -> None:
    for name in ("adamw", "sgd"):
        for is_recurrent in (True, False):
            null = OptimizerConfig(name=name)
            complete = null.complete(is_recurrent)
            assert complete.lr == highest_rate(null, is_recurrent) == highest_rate(complete, is_recurrent)
            assert complete.complete(not is_recurrent) == complete
    assert OptimizerConfig(lr=0.7, weight_decay=0.2).complete(True) == OptimizerConfig(lr=0.7, weight_decay=0.2)
    assert (OptimizerConfig().complete(True).weight_decay, OptimizerConfig(name="sgd").complete(True).weight_decay) == (
        0.1,
        0.0,
    )
    assert [TrainConfig(n_context=n).complete(limit).n_context for n, limit in ((None, None), (None, 8), (5, 8))] == [
        64,
        8,
        5,
    ]
