"""A run that is stopped and resumed gives the bits of one that was never stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_training import (
    SIZES,
    exchange_random_numbers,
    lasting_metrics,
    run_tiny,
    same_runs,
    stop_at,
    tiny_model,
    tiny_text,
)

from regard.errors import RegardError
from regard.tasks.text_objective import evaluate_slice
from regard.training import device
from regard.training.checkpoint import checkpoint_folders
from regard.training.config import MAY_CHANGE_ON_RESUME, CheckpointConfig, RuntimeConfig, TrainConfig
from regard.training.state import TrainState
from regard.training.weights import checksum_of, read_tensors

EVERYTHING = {
    "train": {"average": "ema", "average_decay": 0.9, "n_accumulate": 2},
    "schedule": {"name": "plateau", "patience": 1},
    "checkpoint": {"every_steps": 3},
}


@pytest.mark.parametrize("name", SIZES)
def test_a_stopped_and_resumed_run_gives_the_bits_of_one_never_stopped(name: str, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_tiny(whole, tiny_model(name, p_dropout=0.2), **EVERYTHING)
    for step in (2, 3, 8):
        result = run_tiny(parts, tiny_model(name, p_dropout=0.2), resume=True, on_step=stop_at(step), **EVERYTHING)
        assert (result.reason, result.step) == ("interrupted", step)
        torch.rand(5)  # whatever the process does in between must not matter
    result = run_tiny(parts, tiny_model(name, p_dropout=0.2), resume=True, **EVERYTHING)
    assert (result.reason, result.step, result.is_finished) == ("max_steps", 12, True)
    assert same_runs(whole, parts)
    for file in ("model", "average", "optimizer", "carried", "random", "best"):
        a, b = (f / "state" / "step-00000012" / f"{file}.safetensors" for f in (whole, parts))
        assert a.read_bytes() == b.read_bytes(), file


STRONG = {
    "n_layers": 3,
    "d_hidden": 14,
    "p_dropout": 0.4,
    "p_hidden": 0.25,
    "p_embedding": 0.1,
    "p_weight": 0.5,
    "is_variational": True,
    "activation_penalty": 2.0,
    "slowness_penalty": 1.0,
}


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_a_strong_recurrent_model_with_windows_of_varying_length_and_triggered_averaging_resumes_too(
    name: str, tmp_path: Path
) -> None:
    sections = {
        "train": {
            "max_steps": 16,
            "eval_every": 2,
            "average": "nt-asgd",
            "average_patience": 1,
            "varies_context": True,
        },
        "optimizer": {"name": "sgd", "lr": 30.0, "weight_decay": 1.2e-6, "decays_vectors": True, "max_grad_norm": 0.25},
        "schedule": {"name": "constant"},
    }
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_tiny(whole, tiny_model(name, **STRONG), **sections)
    for step in (3, 8, 13):
        run_tiny(parts, tiny_model(name, **STRONG), resume=True, on_step=stop_at(step), **sections)
    run_tiny(parts, tiny_model(name, **STRONG), resume=True, **sections)
    assert same_runs(whole, parts)
    average = read_tensors(whole / "state" / "step-00000016" / "average.safetensors")
    assert 1 < int(average["n_averaged"]) < 16  # it was triggered on the way
    rates = {line["lr"] for line in lasting_metrics(whole) if line["kind"] == "train"}
    assert len(rates) > 2  # the rate followed the lengths
    for file in ("model", "average", "optimizer", "carried", "random", "best"):
        a, b = (f / "state" / "step-00000016" / f"{file}.safetensors" for f in (whole, parts))
        assert a.read_bytes() == b.read_bytes(), file


def test_a_resumed_run_with_windows_of_another_kind_is_refused(tmp_path: Path) -> None:
    run_tiny(tmp_path, on_step=stop_at(4))
    with pytest.raises(RegardError, match="its order was stream and is stream of varying length now"):
        run_tiny(tmp_path, train={"varies_context": True}, resume=True)


def test_windows_of_varying_length_are_refused_for_a_model_with_a_limit(tmp_path: Path) -> None:
    with pytest.raises(
        RegardError, match=r"train\.varies_context .* but the model sees at most 8 tokens\. Set it to false"
    ):
        run_tiny(tmp_path, tiny_model("transformer"), train={"varies_context": True})


def test_once_triggered_the_average_is_what_is_evaluated_and_kept(tmp_path: Path) -> None:
    sections = {
        "train": {"max_steps": 12, "eval_every": 1, "average": "nt-asgd", "average_patience": 0},
        "optimizer": {"name": "sgd", "lr": 25.0, "max_grad_norm": 0.25},
        "schedule": {"name": "constant", "n_warmup": 0},
    }
    model = tiny_model()
    run_tiny(tmp_path / "a", model, **sections)
    plain = {"train": sections["train"] | {"average": "none"}}
    run_tiny(tmp_path / "b", tiny_model(), **(sections | plain))
    with_average, without = (
        [line["nats_per_token"] for line in lasting_metrics(tmp_path / f) if line["kind"] == "valid"] for f in "ab"
    )
    first_worse = next(k for k in range(1, 12) if without[k] > min(without[:k]))
    assert first_worse < 10
    # The mean of one weight is that weight; from the next evaluation on the scores differ.
    assert with_average[: first_worse + 1] == without[: first_worse + 1]
    assert with_average[first_worse + 1] != without[first_worse + 1]
    assert min(with_average[first_worse + 1 :]) < min(without[first_worse + 1 :])  # large steps, averaged out
    assert min(with_average) == min(with_average[first_worse + 1 :])
    assert evaluate_slice(model, tiny_text().valid, None, eos=0).nats_per_token == min(with_average)


def test_tf32_is_switched_on_for_the_time_of_a_run_on_a_gpu_and_never_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind, expected in (("cpu", "highest"), ("cuda", "high")):
        monkeypatch.setattr(device, "device_type", lambda name, kind=kind: kind)
        with device.session(RuntimeConfig(precision="tf32"), seed=0):
            assert torch.get_float32_matmul_precision() == expected
        assert torch.get_float32_matmul_precision() == "highest"


def test_the_test_of_resuming_would_see_a_lost_random_state(tmp_path: Path) -> None:
    run_tiny(tmp_path / "a", tiny_model(p_dropout=0.5))
    run_tiny(tmp_path / "b", tiny_model(p_dropout=0.5), on_step=stop_at(4))
    exchange_random_numbers(checkpoint_folders(tmp_path / "b")[-1], checkpoint_folders(tmp_path / "a")[-1])
    run_tiny(tmp_path / "b", tiny_model(p_dropout=0.5), resume=True)
    assert not same_runs(tmp_path / "a", tmp_path / "b")


def test_resuming_drops_what_was_measured_after_the_checkpoint(tmp_path: Path) -> None:
    run_tiny(tmp_path / "a")
    run_tiny(tmp_path / "b", on_step=stop_at(6))
    with (tmp_path / "b" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 8}\n{"kind": "tra')
    run_tiny(tmp_path / "b", resume=True)
    assert same_runs(tmp_path / "a", tmp_path / "b")


def test_resuming_puts_the_best_weights_of_the_checkpoint_back(tmp_path: Path) -> None:
    run_tiny(tmp_path, on_step=stop_at(6))
    best = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "later").write_bytes(b"weights of a later step")
    (tmp_path / "later").rename(tmp_path / "model.safetensors")
    run_tiny(tmp_path, resume=True, on_step=stop_at(7))
    assert (tmp_path / "model.safetensors").read_bytes() == best


def test_resuming_where_nothing_was_saved_yet_starts_from_the_beginning(tmp_path: Path) -> None:
    run_tiny(tmp_path / "a")
    run_tiny(tmp_path / "b", resume=True)
    assert same_runs(tmp_path / "a", tmp_path / "b")


def test_weights_of_a_run_that_died_before_its_first_checkpoint_are_not_taken_for_those_of_the_next(
    tmp_path: Path,
) -> None:
    def die(state: TrainState) -> bool:
        if state.step == 6:
            raise OSError("the disk is gone")
        return False

    with pytest.raises(OSError, match="the disk is gone"):
        run_tiny(tmp_path, on_step=die)
    assert (tmp_path / "model.safetensors").exists()  # from the evaluation at step 5
    run_tiny(tmp_path, resume=True, on_step=stop_at(2))
    last = read_tensors(tmp_path / "state" / "step-00000002" / "model.safetensors")
    assert checksum_of(read_tensors(tmp_path / "model.safetensors")) == checksum_of(last)


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    first = run_tiny(tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    again = run_tiny(tmp_path, resume=True)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert again == first


def test_a_run_with_the_same_seed_gives_the_same_bits_whatever_was_drawn_before(tmp_path: Path) -> None:
    torch.manual_seed(1)
    run_tiny(tmp_path / "a", tiny_model(p_dropout=0.3))
    model = tiny_model(p_dropout=0.3)
    torch.manual_seed(99)
    run_tiny(tmp_path / "b", model)
    assert same_runs(tmp_path / "a", tmp_path / "b")


def test_training_leaves_the_random_generators_of_the_caller_alone(tmp_path: Path) -> None:
    model = tiny_model(p_dropout=0.3)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run_tiny(tmp_path, model)
    assert torch.equal(torch.rand(3), expected)


def test_a_resumed_run_with_other_data_is_refused(tmp_path: Path) -> None:
    run_tiny(tmp_path, on_step=stop_at(4))
    with pytest.raises(
        RegardError, match=r"its data was tiny and is other now. Resume it with what it was started with"
    ):
        run_tiny(tmp_path, text=tiny_text(fingerprint="other"), resume=True)


def test_a_resumed_run_with_another_batch_is_refused(tmp_path: Path) -> None:
    run_tiny(tmp_path, on_step=stop_at(4))
    with pytest.raises(RegardError, match="its n_batch was 4 and is 5 now"):
        run_tiny(tmp_path, train={"n_batch": 5}, resume=True)


def test_a_folder_that_holds_a_run_is_refused_without_resume(tmp_path: Path) -> None:
    run_tiny(tmp_path)
    with pytest.raises(RegardError, match=r"already holds a run, saved at step-00000012. Resume it or choose another"):
        run_tiny(tmp_path)


def test_a_run_in_bfloat16_resumes_to_the_same_bits(tmp_path: Path) -> None:
    runtime = {"precision": "bf16"}
    run_tiny(tmp_path / "a", runtime=runtime)
    run_tiny(tmp_path / "b", runtime=runtime, on_step=stop_at(4))
    run_tiny(tmp_path / "b", runtime=runtime, resume=True)
    assert same_runs(tmp_path / "a", tmp_path / "b")


def test_a_deterministic_run_gives_the_same_bits_and_leaves_the_switch_as_it_was(tmp_path: Path) -> None:
    run_tiny(tmp_path / "a")
    run_tiny(tmp_path / "b", runtime={"is_deterministic": True})
    assert same_runs(tmp_path / "a", tmp_path / "b")
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_finished_run_is_trained_longer_where_its_limit_is_raised(tmp_path: Path) -> None:
    """With a rate that does not depend on the limit, it is the run that had the higher limit from the start."""
    plan = {"schedule": {"name": "constant", "n_warmup": 0}}
    assert run_tiny(tmp_path / "parts", train={"max_steps": 6}, **plan).reason == "max_steps"
    result = run_tiny(tmp_path / "parts", train={"max_steps": 12}, resume=True, **plan)
    run_tiny(tmp_path / "whole", train={"max_steps": 12}, **plan)
    assert (result.reason, result.step) == ("max_steps", 12)
    parts, whole = (tmp_path / folder / "state" / "step-00000012" for folder in ("parts", "whole"))
    for file in ("model.safetensors", "optimizer.safetensors", "carried.safetensors"):
        assert (parts / file).read_bytes() == (whole / file).read_bytes(), file
    # Checking types in tests draws from Python's generator, and the first part was evaluated once more.
    a, b = (read_tensors(folder / "random.safetensors")["torch"] for folder in (parts, whole))
    assert torch.equal(a, b)


def test_the_schedule_of_a_run_that_is_trained_longer_is_that_of_the_new_limit(tmp_path: Path) -> None:
    run_tiny(tmp_path / "parts", train={"max_steps": 6}, checkpoint={"log_every": 1})
    run_tiny(tmp_path / "parts", train={"max_steps": 12}, checkpoint={"log_every": 1}, resume=True)
    run_tiny(tmp_path / "whole", train={"max_steps": 12}, checkpoint={"log_every": 1})
    parts, whole = (
        [line["lr"] for line in lasting_metrics(tmp_path / f) if line["kind"] == "train"] for f in ("parts", "whole")
    )
    assert parts[:6] != whole[:6]
    assert parts[6:] == whole[6:]


@pytest.mark.parametrize(
    ("first", "then", "reason"),
    [
        ({"max_steps": None, "max_tokens": 64}, {"max_steps": None, "max_tokens": 160}, "max_tokens"),
        ({"max_steps": 4}, {"max_steps": None, "max_tokens": 160}, "max_tokens"),
        ({"max_epochs": 0.1}, {"max_epochs": 0.25}, "max_steps"),
        ({"max_steps": 4, "eval_every": 2}, {"max_steps": 5, "eval_every": 3, "patience": 9}, "max_steps"),
    ],
)
def test_any_limit_may_change_when_a_run_is_resumed(
    first: dict[str, object], then: dict[str, object], reason: str, tmp_path: Path
) -> None:
    run_tiny(tmp_path, train=first)
    result = run_tiny(tmp_path, train=then, checkpoint={"every_steps": 1, "keep": 3}, resume=True)
    assert (result.reason, result.step) == (reason, 5)


def test_a_run_that_patience_ended_goes_on_with_more_of_it(tmp_path: Path) -> None:
    never_better = {"eval_every": 1, "max_steps": 9}
    still = {"optimizer": {"lr": 1e-30}, "schedule": {"n_warmup": 0, "name": "constant"}}
    assert run_tiny(tmp_path, train=never_better | {"patience": 2}, **still).step == 3
    assert run_tiny(tmp_path, train=never_better | {"patience": 2}, resume=True, **still).step == 3
    assert run_tiny(tmp_path, train=never_better | {"patience": 4}, resume=True, **still).step == 5


def test_what_may_change_on_resume_are_settings_that_exist() -> None:
    sections = {"train": TrainConfig, "checkpoint": CheckpointConfig, "runtime": RuntimeConfig}
    for name in MAY_CHANGE_ON_RESUME:
        section, _, field = name.partition(".")
        assert field in {line.name for line in sections[section].help()}, name


def test_a_run_killed_before_it_removed_its_oldest_checkpoint_removes_it_when_it_goes_on(tmp_path: Path) -> None:
    run_tiny(tmp_path, checkpoint={"every_steps": 4, "keep": 9})
    assert len(checkpoint_folders(tmp_path)) == 3
    run_tiny(tmp_path, resume=True, checkpoint={"every_steps": 4, "keep": 2})
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step-00000008", "step-00000012"]
