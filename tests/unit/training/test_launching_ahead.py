"""An update that is launched before the one before it is read. On a GPU that is the rule; here a CPU is told so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_training import lasting_metrics, objective_on, run_tiny, same_runs, tiny_model, tiny_text

from regard.errors import RegardError
from regard.tasks.text_objective import build_batches
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import DivergedError, Launched, Learner


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every learner launches ahead; which updates were, in order."""
    numbers: list[int] = []
    begin, launch = Learner.__init__, Learner.launch

    def guarded(self: Learner, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        self.is_guarded = True

    def noted(self: Learner, index: int, lr: float) -> Any:
        numbers.append(index)
        return launch(self, index, lr)

    monkeypatch.setattr(Learner, "__init__", guarded)
    monkeypatch.setattr(Learner, "launch", noted)
    return numbers


@pytest.mark.parametrize("changes", [{}, {"train": {"average": "ema"}}, {"checkpoint": {"log_every": 1}},
                                     {"train": {"max_steps": None, "max_tokens": 352}}])  # fmt: skip
def test_a_run_that_launches_ahead_is_the_run_that_waits(
    tmp_path: Path, request: pytest.FixtureRequest, changes: dict[str, Any]
) -> None:
    run_tiny(tmp_path / "waits", **changes)
    request.getfixturevalue("launched")
    run_tiny(tmp_path / "ahead", **changes)
    assert lasting_metrics(tmp_path / "ahead") == lasting_metrics(tmp_path / "waits")
    assert same_runs(tmp_path / "ahead", tmp_path / "waits")


def test_no_update_is_launched_beyond_the_last(tmp_path: Path, launched: list[int]) -> None:
    result = run_tiny(tmp_path)
    assert (launched, result.step) == (list(range(12)), 12)


def test_a_loss_that_is_not_a_number_is_noticed_one_update_later(
    tmp_path: Path, launched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, launch = tiny_model(), Learner.launch

    def spoilt(self: Learner, index: int, lr: float) -> Any:
        if index == 6:
            with torch.no_grad():
                model.embedding.mul_(float("nan"))
        return launch(self, index, lr)

    monkeypatch.setattr(Learner, "launch", spoilt)
    with pytest.raises(RegardError, match=r"stopped at step 7: the loss is nan .* last good checkpoint is .*00000004"):
        run_tiny(tmp_path, model, checkpoint={"every_steps": 4, "log_every": 100}, train={"eval_every": 100})
    assert launched == list(range(8))


def test_after_a_number_that_is_not_finite_no_weight_moves(launched: list[int]) -> None:
    model, text = tiny_model(), tiny_text()
    train = TrainConfig(n_batch=4, n_context=8)
    learner = Learner(
        model, objective_on(model, build_batches(model, text.train, train, seed=0)), train=train,
        optimizer=OptimizerConfig(),
        runtime=RuntimeConfig(device="cpu"),
    )  # fmt: skip
    learner.launch(0, 0.1).wait()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    kept = model.embedding.detach().clone()
    model.embedding.data.fill_(float("inf"))
    bad = learner.launch(1, 0.1)
    model.embedding.data.copy_(kept)
    learner.launch(2, 0.1)
    with pytest.raises(DivergedError, match="the loss is nan"):
        bad.wait()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name


def test_an_update_is_read_while_the_next_is_under_way_unless_somebody_waits_for_it(
    tmp_path: Path, launched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    launch, wait = Learner.launch, Launched.wait

    def noted_launch(self: Learner, index: int, lr: float) -> Any:
        events.append(f"launch {index}")
        return launch(self, index, lr)

    def noted_wait(self: Launched, since: float = 0.0) -> Any:
        events.append("wait")
        return wait(self, since)

    monkeypatch.setattr(Learner, "launch", noted_launch)
    monkeypatch.setattr(Launched, "wait", noted_wait)
    run_tiny(tmp_path, train={"max_steps": 5, "eval_every": 3}, checkpoint={"log_every": 100})
    ahead = ["launch 0", "launch 1", "wait", "launch 2", "wait", "wait"]  # the evaluation after step 3 waits
    assert events == [*ahead, "launch 3", "launch 4", "wait", "wait"]
