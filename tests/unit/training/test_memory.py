from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_training import SIZES, VOCAB_SIZE, run_tiny, tiny_model, tiny_text

from regard.errors import RegardError
from regard.models.table import build_model, model_config
from regard.tasks.text_objective import TextObjective
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.device import pick_device
from regard.training.memory import MemoryEstimate, available_memory, check_memory, estimate_memory, readable


def of(
    name: str,
    optimizer: OptimizerConfig | None = None,
    device: str = "cpu",
    vocab_size: int = VOCAB_SIZE,
    runtime: dict[str, str] | None = None,
    **train: object,
) -> MemoryEstimate:
    """The estimate for a model that is on `device` now and will be trained as `runtime` says: on the CPU."""
    with torch.device(device):
        model = build_model(name, model_config(name, SIZES[name]), vocab_size)
    config = RuntimeConfig.from_dict({"device": "cpu"} | (runtime or {}))
    settings = TrainConfig.from_dict({"n_batch": 32} | train)
    objective = TextObjective(model, tiny_text(n_tokens=40_000), settings, seed=0)
    return estimate_memory(model, objective, settings, optimizer or OptimizerConfig(), config)


def test_weights_gradients_and_optimiser_are_counted_in_float32() -> None:
    n = 4 * tiny_model("lstm").n_parameters
    found = of("lstm")
    assert (found.weights, found.gradients, found.optimizer, found.average) == (n, n, 2 * n, 0)
    assert of("lstm", OptimizerConfig(name="sgd")).optimizer == 0
    assert of("lstm", OptimizerConfig(name="sgd", momentum=0.9)).optimizer == n
    assert of("lstm", average="ema").average == 2 * n
    assert found.total == 4 * n + found.activations + found.loss


@pytest.mark.parametrize("name", SIZES)
def test_activations_grow_with_the_rows_of_a_part(name: str) -> None:
    whole = of(name, n_batch=8)
    assert of(name, n_batch=8, n_accumulate=4).activations * 4 == whole.activations
    assert of(name, n_batch=16).activations == 2 * whole.activations
    assert whole.activations > 8 * 8 * 8 * 4  # at least the embedded input


@pytest.mark.parametrize("name", SIZES)
def test_a_model_without_memory_can_be_asked_too(name: str) -> None:
    real, meta = of(name), of(name, device="meta")
    assert meta.weights == real.weights
    # The fused LSTM of a CPU keeps a workspace that meta does not show, its attention keeps less than the plain one.
    with_lstm = dict.fromkeys(("lstm", "rnn-attention", "pointer"), (0.35, 1))
    low, high = {**with_lstm, "attention": (1, 1.4)}.get(name, (0.95, 1.05))
    assert low <= meta.activations / real.activations <= high


@pytest.mark.parametrize("name", SIZES)
def test_a_model_that_will_move_to_a_gpu_is_estimated_for_the_gpu(name: str) -> None:
    gpu = {"device": "cuda"}
    assert of(name, device="cpu", runtime=gpu) == of(name, device="meta", runtime=gpu)


def test_dropped_weights_are_counted_once_and_not_for_every_sequence() -> None:
    def activations(n_batch: int, **changes: float) -> int:
        model = tiny_model("lstm", **changes)
        train = TrainConfig(n_batch=n_batch, n_context=8)
        objective = TextObjective(model, tiny_text(), train, seed=0)
        return estimate_memory(model, objective, train, OptimizerConfig(), RuntimeConfig(device="cpu")).activations

    one, three, five = (activations(n, p_weight=0.5) for n in (1, 3, 5))
    assert five - three == three - one
    assert 0 < one - (three - one) // 2 < 10 * 2 * 48 * 12 * 4  # what is there once: some copies of U, of two layers
    assert activations(6) == 6 * activations(1)


def test_the_loss_holds_a_chunk_of_logits_and_two_gradients_of_the_output_weights() -> None:
    V, D, n_tokens = 50_000, SIZES["transformer"]["d_model"], 128 * 8
    of_weights = 2 * 4 * V * D
    sizes = {"vocab_size": V, "device": "meta", "n_batch": 128}
    assert of("transformer", **sizes).loss == 4 * V * (2**22 // V) + of_weights
    assert of("transformer", **sizes, runtime={"device": "cuda"}).loss == 4 * V * n_tokens + of_weights
    # bfloat16: a copy of the chunk and one of the weights, two bytes a number.
    low = of("transformer", **sizes, runtime={"precision": "bf16"}).loss
    assert low == 6 * V * (2**22 // V) + of_weights + 2 * V * D


def test_asking_changes_neither_mode_nor_random_numbers() -> None:
    model = tiny_model(p_dropout=0.5).eval()
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    train = TrainConfig(n_batch=4, n_context=8)
    objective = TextObjective(model, tiny_text(), train, seed=0)
    estimate_memory(model, objective, train, OptimizerConfig(), RuntimeConfig(device="cpu"))
    assert torch.equal(torch.rand(2), expected)
    assert not model.training


def test_there_is_some_memory_here() -> None:
    available = available_memory(torch.device("cpu"))
    assert available is not None
    assert available > 2**20


def test_a_run_that_cannot_fit_is_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(
        RegardError, match=r"Training needs about .* MB \(weights .*\) and cpu has 0 MB\. Raise train.n_acc"
    ):
        run_tiny(tmp_path, runtime={"max_memory_gb": 1e-6})
    huge = MemoryEstimate(2**60, 2**60, 2**61, 0, 0, 0)
    with pytest.raises(RegardError, match=r"needs about 4294967296\.00 GB"):
        check_memory(huge, RuntimeConfig(), torch.device("cpu"), "train.n_batch")


def test_bytes_are_readable() -> None:
    assert [readable(n) for n in (0, 5 * 2**20, 2**30)] == ["0 MB", "5 MB", "1.00 GB"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_told_and_auto_takes_the_cpu() -> None:
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(
        RegardError, match=r"The device 'cuda' was asked for, but torch \S+ sees no GPU here. Use runtime"
    ):
        pick_device("cuda")


def test_a_gpu_beyond_the_last_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("auto") == torch.device("cuda")
    assert pick_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(RegardError, match=r"'cuda:2' was asked for, but this machine has 2 GPUs: cuda:0 to cuda:1"):
        pick_device("cuda:2")
