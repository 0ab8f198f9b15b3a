from pathlib import Path

import pytest
import torch
from tiny_training import objective_on, run_tiny, tiny_model, tiny_text

from regard.data.batches import Batches
from regard.models.regularization import activation_penalty
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Learner
from regard.training.metrics import read_metrics


def test_the_penalty_is_the_one_worked_by_hand() -> None:
    raw = torch.tensor([[[1.0, 2.0], [3.0, 2.0], [3.0, -2.0]]], dtype=torch.float64)  # (1, 3, 2)
    dropped = torch.tensor([[[2.0, 0.0], [6.0, 0.0], [0.0, -4.0]]], dtype=torch.float64)
    everything = torch.ones(1, 3, dtype=torch.bool)
    # Squares of the dropped output: (4 + 0)/2 + (36 + 0)/2 + (0 + 16)/2 = 2 + 18 + 8.
    assert activation_penalty(dropped, raw, everything, 1.0, 0.0).item() == 28.0
    # Changes of the raw output: (4 + 0)/2 + (0 + 16)/2 = 2 + 8.
    assert activation_penalty(dropped, raw, everything, 0.0, 1.0).item() == 10.0
    assert activation_penalty(dropped, raw, everything, 2.0, 3.0).item() == 86.0


def test_what_is_no_real_token_costs_nothing() -> None:
    torch.manual_seed(0)
    dropped, raw = (torch.randn(2, 5, 3, dtype=torch.float64) for _ in range(2))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    whole = activation_penalty(dropped, raw, mask, 2.0, 1.0)
    first = activation_penalty(dropped[:1], raw[:1], mask[:1], 2.0, 1.0)
    second = activation_penalty(dropped[1:, :3], raw[1:, :3], mask[1:, :3], 2.0, 1.0)
    torch.testing.assert_close(whole, first + second, rtol=0, atol=1e-12)


def test_a_model_pays_only_while_it_trains_and_only_if_asked() -> None:
    ids, mask = torch.ones(2, 4, dtype=torch.long), torch.ones(2, 4, dtype=torch.bool)
    model = tiny_model("lstm", activation_penalty=2.0, slowness_penalty=1.0, p_dropout=0.5)
    h, _ = model.hidden(ids)
    torch.manual_seed(0)
    goal, nats = model.goal_of(h, ids, mask)
    torch.manual_seed(0)
    dropped = model.drop_output(h)
    assert not torch.equal(dropped, h)
    torch.testing.assert_close(goal, nats + activation_penalty(dropped, h, mask, 2.0, 1.0))
    h, _ = model.eval().hidden(ids)
    for paying in (model, tiny_model("lstm", p_dropout=0.5)):
        goal, nats = paying.goal_of(h, ids, mask)
        assert goal is nats


@pytest.mark.parametrize("n_accumulate", [1, 3])
def test_the_update_follows_loss_and_penalty_together_whatever_the_parts(n_accumulate: int) -> None:
    def stepped(alpha: float, beta: float) -> tuple[torch.Tensor, float]:
        model = tiny_model("lstm", activation_penalty=alpha, slowness_penalty=beta).double()
        batches = Batches(tiny_text().train, n_batch=6, n_context=8)
        learner = Learner(
            model,
            objective_on(model, batches),
            train=TrainConfig(n_batch=6, n_accumulate=n_accumulate),
            optimizer=OptimizerConfig(name="sgd", max_grad_norm=None),
            runtime=RuntimeConfig(device="cpu"),
        )
        before = model.embedding.detach().clone()
        nats = learner.update(0, lr=1.0).nats
        return before - model.embedding.detach(), nats

    plain, nats = stepped(0.0, 0.0)
    found, nats_too = stepped(2.0, 1.0)
    assert nats == pytest.approx(nats_too, abs=1e-10)  # no part of the score
    model = tiny_model("lstm", activation_penalty=2.0, slowness_penalty=1.0).double()
    batch = Batches(tiny_text().train, n_batch=6, n_context=8).at(0)
    h, _ = model.hidden(torch.from_numpy(batch.inputs))
    goal, nats = model.goal_of(h, torch.from_numpy(batch.targets), torch.from_numpy(batch.mask))
    penalty = goal - nats
    (grad,) = torch.autograd.grad(penalty / batch.mask.sum(), model.embedding)
    torch.testing.assert_close(found, plain + grad, rtol=0, atol=1e-12)


def test_the_scores_of_a_run_hold_no_penalty(tmp_path: Path) -> None:
    still = {"optimizer": {"name": "sgd", "lr": 1e-12}}
    run_tiny(tmp_path / "a", tiny_model("lstm"), **still)
    run_tiny(tmp_path / "b", tiny_model("lstm", activation_penalty=50.0, slowness_penalty=50.0), **still)
    for a, b in zip(read_metrics(tmp_path / "a"), read_metrics(tmp_path / "b"), strict=True):
        assert a["nats_per_token"] == pytest.approx(b["nats_per_token"], abs=1e-6)
