"""The training loop: what it writes, that it resumes to the same bits, and how it ends."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from safetensors.torch import load_file
from tiny_training import run_tiny, same_runs, stop_at, tiny_model, tiny_text

from regard.errors import RegardError
from regard.models.language_model import LanguageModel
from regard.training.checkpoint import checkpoint_folders, load_checkpoint
from regard.training.metrics import read_metrics
from regard.training.progress import Lines, Silent, Status
from regard.training.state import TrainState
from regard.training.weights import read_tensors


def spoil(model: LanguageModel, step: int, factor: float = -20.0) -> Callable[[TrainState], bool]:
    """Multiply the embeddings by `factor` after that step."""

    def hook(state: TrainState) -> bool:
        if state.step == step:
            with torch.no_grad():
                model.embedding.mul_(factor)
        return False

    return hook


def test_metrics_count_tokens_flops_and_the_bytes_of_the_text(tmp_path: Path) -> None:
    model = tiny_model()
    run_tiny(tmp_path, model)
    lines = read_metrics(tmp_path, "train")
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 10, 12]
    assert [line["tokens"] for line in lines] == [64, 128, 192, 256, 320, 384]
    assert lines[0]["flops"] == 3 * model.flops_per_token(8) * 64
    for line in lines:
        assert line["bits_per_byte"] == pytest.approx(line["nats_per_token"] / math.log(2) / 2, rel=1e-12)
        assert line["tokens_per_second"] > 0
        assert line["grad_norm"] > 0
    assert [line["step"] for line in read_metrics(tmp_path, "valid")] == [5, 10, 12]


def test_the_kept_weights_are_those_of_the_best_evaluation(tmp_path: Path) -> None:
    model = tiny_model("window")
    result = run_tiny(tmp_path, model, on_step=spoil(model, 7), train={"eval_every": 1}, optimizer={"lr": 0.01})
    scores = {line["step"]: line["nats_per_token"] for line in read_metrics(tmp_path, "valid")}
    best = min(scores, key=lambda step: scores[step])
    assert (result.best_step, result.nats_per_token) == (best, scores[best])
    assert best == 7
    kept = load_file(tmp_path / "model.safetensors")
    for name, weight in model.named_parameters():
        assert torch.equal(weight, kept[name])  # the model in hand is the best one too
    last = load_file(tmp_path / "state" / "step-00000012" / "model.safetensors")
    assert not torch.equal(last["embedding"], kept["embedding"])


def test_early_stopping_ends_after_patience_evaluations_without_a_better_score(tmp_path: Path) -> None:
    settings = {"eval_every": 1, "patience": 3, "max_steps": 200}
    model = tiny_model("window")
    result = run_tiny(tmp_path, model, on_step=spoil(model, 7), train=settings, optimizer={"lr": 0.01})
    assert (result.reason, result.best_step, result.step) == ("patience", 7, 10)


def test_the_newest_states_are_kept_and_older_ones_dropped(tmp_path: Path) -> None:
    run_tiny(tmp_path, checkpoint={"every_steps": 2, "keep": 3})
    assert [f.name for f in checkpoint_folders(tmp_path)] == ["step-00000008", "step-00000010", "step-00000012"]


def test_a_limit_in_tokens_ends_the_run_and_the_schedule_together(tmp_path: Path) -> None:
    schedule = {"name": "linear", "p_final": 0.0, "n_warmup": 0}
    result = run_tiny(tmp_path, train={"max_steps": None, "max_tokens": 320}, schedule=schedule)
    assert (result.reason, result.tokens, result.step) == ("max_tokens", 320, 10)
    rates = [line["lr"] for line in read_metrics(tmp_path, "train")]
    assert rates == pytest.approx([0.02 * (1 - i / 10) for i in (1, 3, 5, 7, 9)])


def test_a_limit_in_seconds_counts_training_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr("regard.training.learner.time.perf_counter", lambda: float(next(ticks)))  # a second each
    result = run_tiny(tmp_path, train={"max_steps": None, "max_seconds": 7.0})
    assert (result.reason, result.step, result.seconds) == ("max_seconds", 7, 7.0)


def test_the_clock_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr("regard.training.learner.time.perf_counter", lambda: float(next(ticks)))
    limits = {"max_steps": None, "max_seconds": 7.0}
    run_tiny(tmp_path, train=limits, on_step=stop_at(3))
    assert run_tiny(tmp_path, train=limits, resume=True).step == 7


def test_a_limit_in_epochs_ends_after_so_many_passes(tmp_path: Path) -> None:
    result = run_tiny(tmp_path, train={"max_steps": None, "max_epochs": 0.5})  # 600 tokens, 32 a step: 18 steps a pass
    assert result.step == 9


def test_a_loss_that_is_not_a_number_stops_with_the_last_good_checkpoint(tmp_path: Path) -> None:
    model = tiny_model()

    with pytest.raises(RegardError) as error:
        run_tiny(tmp_path, model, on_step=spoil(model, 7, math.nan), checkpoint={"every_steps": 3})
    text = str(error.value)
    assert "Training stopped at step 8: the loss is nan at learning rate 0.00" in text
    assert f"The last good checkpoint is {tmp_path / 'state' / 'step-00000006'}" in text
    assert "Lower optimizer.lr" in text
    run_tiny(tmp_path, resume=True)
    run_tiny(tmp_path.with_name("whole"))
    assert same_runs(tmp_path, tmp_path.with_name("whole"))


def test_an_infinite_gradient_stops_before_it_reaches_the_weights(tmp_path: Path) -> None:
    model = tiny_model()
    model.mixer.layers[0].register_full_backward_hook(  # type: ignore[attr-defined]
        lambda module, into, out: tuple(None if g is None else g * math.inf for g in into)
    )
    before = model.embedding.detach().clone()
    with pytest.raises(
        RegardError, match=r"step 1: the loss is 2\.\d+ and the gradient's norm is (inf|nan).*No good checkpoint"
    ):
        run_tiny(tmp_path, model)
    assert torch.equal(model.embedding, before)


def test_a_full_gpu_ends_a_run_in_a_sentence_that_says_what_to_lower(tmp_path: Path) -> None:
    def fill(state: TrainState) -> bool:
        if state.step == 2:
            model.mixer.register_forward_pre_hook(run_out)
        return False

    def run_out(module: object, given: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    model = tiny_model()
    saved = tmp_path / "state" / "step-00000002"
    message = rf"step 3: the memory of the GPU is full. The last checkpoint is {saved}. Lower train.n_batch or train"
    with pytest.raises(RegardError, match=message):
        run_tiny(tmp_path, model, on_step=fill, checkpoint={"every_steps": 1})


@pytest.mark.parametrize(("factor", "message"), [(300.0, "step 30: the loss exploded to"), (math.nan, "step 11: the")])
@pytest.mark.parametrize("keep", [1, 2, 5])
def test_a_spoilt_checkpoint_is_removed_and_the_one_before_it_resumes(
    factor: float, message: str, keep: int, tmp_path: Path
) -> None:
    """The loss of step 11 is the first to judge the weights that step 10 left in a checkpoint."""
    model = tiny_model("transformer")
    plan = {"train": {"max_steps": 32}, "checkpoint": {"every_steps": 1, "keep": keep}}
    hook = spoil(model, 10, factor)
    with pytest.raises(RegardError, match=message) as error:
        run_tiny(tmp_path, model, on_step=hook, **plan)
    good = tmp_path / "state" / "step-00000009"
    assert f"The last good checkpoint is {good}." in str(error.value)
    assert checkpoint_folders(tmp_path)[-1] == good
    assert load_checkpoint(good).tensors["model"]["embedding"].abs().max() < 2
    assert (tmp_path / "model.safetensors").read_bytes() == (good / "best.safetensors").read_bytes()
    assert run_tiny(tmp_path, tiny_model("transformer"), resume=True, **plan).step == 32


def test_where_no_checkpoint_is_good_nothing_is_left_to_be_taken_for_one(tmp_path: Path) -> None:
    model = tiny_model()
    often = {"every_steps": 1}
    with pytest.raises(RegardError, match=r"step 2: the loss is nan.*No good checkpoint had been written yet"):
        run_tiny(tmp_path, model, on_step=spoil(model, 1, math.nan), checkpoint=often)
    assert checkpoint_folders(tmp_path) == []
    assert not (tmp_path / "model.safetensors").exists()


def test_checkpoints_saved_while_the_loss_is_too_high_never_push_out_a_good_one(tmp_path: Path) -> None:
    plan = {"train": {"max_steps": 100}, "checkpoint": {"every_steps": 1, "keep": 1}}
    model = tiny_model("transformer")
    hook = spoil(model, 10, 300.0)
    run_tiny(tmp_path, model, on_step=lambda state: hook(state) or state.step == 12, **plan)
    for step in (14, 16):
        run_tiny(tmp_path, tiny_model("transformer"), on_step=stop_at(step), resume=True, **plan)
    with pytest.raises(RegardError, match=r"step 30: the loss exploded.*checkpoint is .*step-00000009"):
        run_tiny(tmp_path, tiny_model("transformer"), resume=True, **plan)


def test_a_score_that_is_not_a_number_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"step 1: the score on the validation text is nan at .* 1e\+39\. No good"):
        run_tiny(tmp_path, train={"max_steps": 1}, optimizer={"lr": 1e39}, schedule={"n_warmup": 0})
    assert not (tmp_path / "model.safetensors").exists()


def test_speed_is_left_out_until_a_second_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.learner.time.perf_counter", lambda: 5.0)  # as while compiling: no time passes
    out = io.StringIO()
    run_tiny(tmp_path, reporter=Lines(out, every_seconds=0.0), train={"max_steps": 1})
    assert "tokens_per_second" not in read_metrics(tmp_path, "train")[0]
    assert "tokens/s" not in out.getvalue()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_saves_and_says_so(number: int, tmp_path: Path) -> None:
    def interrupt(state: TrainState) -> bool:
        if state.step == 4:
            os.kill(os.getpid(), number)
        return False

    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    result = run_tiny(tmp_path / "a", on_step=interrupt)
    assert result.reason == "interrupted"
    assert checkpoint_folders(tmp_path / "a")[-1].name == f"step-{result.step:08d}"
    assert (tmp_path / "a" / "model.safetensors").exists()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    run_tiny(tmp_path / "a", resume=True)
    run_tiny(tmp_path / "b")
    assert same_runs(tmp_path / "a", tmp_path / "b")


def test_leftovers_of_a_killed_writer_are_removed_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "state" / ".partial-step-00000003-77-0123abcd"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    (tmp_path / ".partial-model.safetensors-77-0123abcd").write_bytes(b"half")
    run_tiny(tmp_path, resume=True)
    assert not list(tmp_path.rglob(".partial*"))


def test_without_a_validation_text_the_last_weights_are_kept(tmp_path: Path) -> None:
    result = run_tiny(tmp_path, text=tiny_text(n_valid=0))
    assert (result.reason, result.best_step, result.bits_per_byte) == ("max_steps", None, None)
    last = read_tensors(tmp_path / "state" / "step-00000012" / "model.safetensors")
    kept = read_tensors(tmp_path / "model.safetensors")
    assert kept.keys() == last.keys()
    assert all(kept[name].equal(last[name]) for name in last)


@pytest.mark.parametrize("name", ["transformer", "lstm", "rnn"])
def test_training_in_bfloat16_learns_what_float32_learns_on_a_cpu(name: str, tmp_path: Path) -> None:
    plan = {"train": {"max_steps": 50, "eval_every": 25}, "optimizer": {"lr": 0.05}}
    full = run_tiny(tmp_path / "full", tiny_model(name), **plan)
    half = run_tiny(tmp_path / "half", tiny_model(name), runtime={"precision": "bf16"}, **plan)
    assert full.nats_per_token is not None
    assert full.nats_per_token < math.log(11) - 0.05
    assert half.nats_per_token == pytest.approx(full.nats_per_token, abs=0.05)


def test_a_state_is_json_and_safetensors_and_nothing_else(tmp_path: Path) -> None:
    run_tiny(tmp_path)
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert {f.suffix for f in files} == {".safetensors", ".json", ".jsonl"}
    json.loads((tmp_path / "state" / "step-00000012" / "state.json").read_text())


def test_a_context_longer_than_the_model_sees_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"n_context is 9, but the model sees at most 8 tokens.*max_context to 9"):
        run_tiny(tmp_path, tiny_model("transformer"), train={"n_context": 9})


def test_a_finished_run_whose_state_is_gone_is_refused_and_keeps_its_weights(tmp_path: Path) -> None:
    run_tiny(tmp_path)
    (tmp_path / "README.md").write_text("# a finished run\n")
    shutil.rmtree(tmp_path / "state")
    files = {name: (tmp_path / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl")}
    with pytest.raises(
        RegardError, match=r"finished run whose saved state is gone.*regard train --from .*another folder"
    ):
        run_tiny(tmp_path, resume=True)
    assert files == {name: (tmp_path / name).read_bytes() for name in files}


def test_weights_of_a_run_that_died_before_its_first_checkpoint_stay_until_there_are_new_ones(tmp_path: Path) -> None:
    old = b"weights of an evaluation that no checkpoint knows of"
    (tmp_path / "model.safetensors").write_bytes(old)
    seen = []

    def look(state: TrainState) -> bool:
        seen.append((tmp_path / "model.safetensors").read_bytes() == old)
        return False

    out = io.StringIO()
    run_tiny(tmp_path, resume=True, on_step=look, reporter=Lines(out))
    assert seen[:5] == [True] * 4 + [False]  # the first evaluation is at step 5
    assert "no saved state in" in out.getvalue()
    run_tiny(tmp_path / "fresh")
    assert same_runs(tmp_path, tmp_path / "fresh")


def test_a_stop_before_the_first_evaluation_saves_the_weights_of_this_run(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"of a run that died")
    run_tiny(tmp_path, resume=True, on_step=stop_at(2))
    kept, last = (load_file(tmp_path / f) for f in ("model.safetensors", "state/step-00000002/model.safetensors"))
    assert all(torch.equal(kept[name], last[name]) for name in last)


def test_weights_that_scored_well_outlive_a_loss_that_is_not_a_number(tmp_path: Path) -> None:
    model = tiny_model()
    with pytest.raises(RegardError, match=r"step 6: the loss is nan.*No good checkpoint had been written yet"):
        run_tiny(tmp_path, model, on_step=spoil(model, 5, math.nan), checkpoint={"every_steps": 5})
    assert checkpoint_folders(tmp_path) == []
    assert all(weight.isfinite().all() for weight in load_file(tmp_path / "model.safetensors").values())


def test_a_finished_run_that_diverges_when_trained_longer_keeps_its_weights(tmp_path: Path) -> None:
    """Without a validation text nothing but the end of the run says that its weights are good."""
    text = tiny_text(n_valid=0)
    run_tiny(tmp_path, text=text)
    (tmp_path / "README.md").write_text("# a finished run\n")
    weights = (tmp_path / "model.safetensors").read_bytes()
    model = tiny_model()
    model.mixer.layers[0].register_full_backward_hook(  # type: ignore[attr-defined]
        lambda module, into, out: tuple(None if g is None else g * math.inf for g in into)
    )
    with pytest.raises(RegardError, match="step 13"):
        run_tiny(tmp_path, model, text=text, resume=True, train={"max_steps": 20})
    assert (tmp_path / "model.safetensors").read_bytes() == weights


def test_the_speed_that_is_shown_is_the_speed_that_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, now = iter([1.0, 2.0, 1e-9] * 100), 0.0

    def clock() -> float:
        nonlocal now
        now += next(ticks)
        return now

    class Shown(Silent):
        speeds: ClassVar[dict[int, float | None]] = {}

        def show(self, status: Status) -> None:
            self.speeds[status.step] = status.tokens_per_second

    monkeypatch.setattr("regard.training.learner.time.perf_counter", clock)
    run_tiny(tmp_path, reporter=Shown())
    logged = {line["step"]: line["tokens_per_second"] for line in read_metrics(tmp_path, "train")}
    assert logged == {step: Shown.speeds[step] for step in logged}
    assert max(logged.values()) < 32  # 32 tokens an update, which takes a second or more
