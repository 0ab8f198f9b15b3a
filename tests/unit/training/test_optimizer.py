from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.errors import RegardError
from regard.models.table import MODELS, build_model, model_config
from regard.training.config import OptimizerConfig, TrainConfig
from regard.training.optimizer import (
    build_optimizer,
    clip_gradients,
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


def test_null_means_what_was_measured_for_the_model() -> None:
    for name, is_recurrent, lr in (
        ("adamw", True, 5e-3),
        ("adamw", False, 1e-3),
        ("sgd", True, 5.0),
        ("sgd", False, 0.5),
    ):
        plain = OptimizerConfig(name=name).complete(is_recurrent)
        assert (plain.lr, plain.follows_width, plain.embedding_rate) == (lr, False, 1.0)
        assert plain.complete(not is_recurrent, 0.3, 4.0) == plain
    measured = OptimizerConfig().complete(True, 0.3, 4.0)
    assert (measured.lr, measured.follows_width, measured.embedding_rate) == (0.3, True, 4.0)
    assert OptimizerConfig(name="sgd").complete(True, 0.3, 4.0).lr == 5.0, "it was measured for adamw"
    assert OptimizerConfig(follows_width=False).complete(True, 0.3, 4.0).lr == 5e-3
    assert [OptimizerConfig(name=n).complete(True).weight_decay for n in ("adamw", "sgd")] == [0.1, 0.0]


def test_a_given_rate_is_that_of_every_weight_unless_asked_otherwise() -> None:
    given = OptimizerConfig(lr=0.7, weight_decay=0.2)
    assert given.complete(True, 0.3, 4.0) == given.replace(follows_width=False, embedding_rate=1.0)
    asked = OptimizerConfig(lr=0.7, follows_width=True).complete(True, 0.3, 4.0)
    assert (asked.lr, asked.embedding_rate) == (0.7, 4.0)


def test_rates_that_follow_the_width_are_refused_for_sgd() -> None:
    with pytest.raises(RegardError, match="follows_width is for adamw, not for sgd"):
        OptimizerConfig(name="sgd", follows_width=True)


def test_every_weight_has_the_rate_of_its_width() -> None:
    """W: 128/n, at most 4; E: embedding_rate; all else: 1. By hand for a Transformer of width 32."""
    config = model_config("transformer", {"d_model": 32, "n_layers": 1, "d_ff": 256, "max_context": 8})
    model = build_model("transformer", config, 11)
    optimizer = build_optimizer(model.named_parameters(), OptimizerConfig(follows_width=True, embedding_rate=4.0))
    set_rate(optimizer, 0.01)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    found = {name: rates[id(p)] for name, p in model.named_parameters()}
    assert found.pop("embedding") == 0.01 * 4.0
    wide = [name for name, p in model.named_parameters() if p.shape == (32, 256)]
    assert [found.pop(name) for name in wide] == [pytest.approx(0.01 / 2)]  # reads d_ff = 256
    matrices = [n for n, p in model.named_parameters() if p.ndim == 2 and n in found and "positions" not in n]
    assert len(matrices) >= 3
    assert {found.pop(name) for name in matrices} == {0.01 * 4.0}
    assert set(found.values()) == {0.01}


def test_embeddings_learn_at_a_rate_in_proportion_to_the_spread_they_start_with() -> None:
    assert [MODELS["transformer"].embedding_rate_at(d) for d in (32, 128, 512)] == [8.0, 4.0, 2.0]
    assert [MODELS["lstm"].embedding_rate_at(d) for d in (32, 128, 512)] == [1.0, 1.0, 1.0]


def test_without_rates_that_follow_the_width_all_weights_have_one() -> None:
    model = build_model("lstm", model_config("lstm", {"d_model": 8}), 11)
    optimizer = build_optimizer(model.named_parameters(), OptimizerConfig(lr=0.3))
    set_rate(optimizer, 0.3)
    assert [group["lr"] for group in optimizer.param_groups] == [0.3, 0.3]


def test_the_context_of_a_training_is_filled_in() -> None:
    assert [TrainConfig(n_context=n).complete(limit).n_context for n, limit in ((None, None), (None, 8), (5, 8))] == [
        64,
        8,
        5,
    ]


def test_a_head_has_a_rate_of_its_own_and_the_layers_below_it_decay() -> None:
    weights = {
        name: nn.Parameter(torch.zeros(2, 2))
        for name in ("encoder.embedding", "encoder.layers.0.weight", "encoder.layers.1.weight", "head.out.weight",
                     "mixer.layers.4.weight", "choice.mix.weight")
    }  # fmt: skip
    optimizer = build_optimizer(weights.items(), OptimizerConfig(head_rate=10.0, layer_decay=0.5))
    factors = {id(p): group["rate_factor"] for group in optimizer.param_groups for p in group["params"]}
    assert [factors[id(p)] for p in weights.values()] == [0.25, 0.5, 1.0, 10.0, 10.0, 10.0]


def test_a_language_model_has_no_head_above_an_encoder() -> None:
    weight = nn.Parameter(torch.zeros(2, 2))
    optimizer = build_optimizer([("mixer.layers.0.weight", weight)], OptimizerConfig(head_rate=10.0))
    assert [group["rate_factor"] for group in optimizer.param_groups] == [1.0]
