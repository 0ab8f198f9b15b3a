"""Updates that are captured and replayed are those that are launched, to the bit; the card itself is asked, if any."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_pairs import GRID, run_tiny_pairs, tiny_pair_model, tiny_prepared
from tiny_training import SIZES, run_tiny, same_runs, stop_at, tiny_model
from torch import Tensor

from regard import api
from regard.training import replay
from regard.training.learner import can_replay
from regard.training.replay import CapturedUpdate, Replay

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = {"device": "cuda", "is_deterministic": True}


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[CapturedUpdate]:
    """What was captured, in order."""
    made: list[CapturedUpdate] = []
    begin = CapturedUpdate.__init__

    def noted(self: CapturedUpdate, *args: Any) -> None:
        begin(self, *args)
        made.append(self)

    monkeypatch.setattr(CapturedUpdate, "__init__", noted)
    return made


def check_replayed(folder: Path, captured: list[CapturedUpdate], train: Any) -> None:
    """`train(folder, runtime)` gives the same bits with replays, of which there are some, as without."""
    train(folder / "launched", GPU | {"is_replayed": False})
    assert not captured
    train(folder / "replayed", GPU)
    assert captured
    assert same_runs(folder / "launched", folder / "replayed")


@needs_gpu
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("name", SIZES)
def test_every_model_learns_the_same(tmp_path: Path, captured: list[CapturedUpdate], name: str, precision: str) -> None:
    changes = {"p_dropout": 0.3} if "p_dropout" in SIZES[name] else {}

    def train(folder: Path, runtime: dict[str, Any]) -> None:
        run_tiny(
            folder, tiny_model(name, **changes), runtime=runtime | {"precision": precision}, train={"max_steps": 40}
        )

    check_replayed(tmp_path, captured, train)


@needs_gpu
@pytest.mark.parametrize("sections", [
    {"train": {"n_accumulate": 2}},
    {"train": {"average": "ema"}},
    {"train": {"average": "nt-asgd", "average_patience": 1, "eval_every": 2}},
    {"train": {"varies_context": True, "n_context": 12, "max_steps": 80}},
    {"optimizer": {"name": "sgd", "momentum": 0.9, "lr": 0.5}},
    {"optimizer": {"max_grad_norm": None, "follows_width": True}},
])  # fmt: skip
def test_every_way_to_train_gives_the_same(
    tmp_path: Path, captured: list[CapturedUpdate], sections: dict[str, Any]
) -> None:
    settings = {"p_dropout": 0.2, "p_weight": 0.3, "is_variational": True, "p_embedding": 0.1}

    def train(folder: Path, runtime: dict[str, Any]) -> None:
        more = {"train": {"max_steps": 30} | sections.get("train", {})}
        run_tiny(folder, tiny_model("lstm", **settings), runtime=runtime, **(sections | more))

    check_replayed(tmp_path, captured, train)


@needs_gpu
@pytest.mark.parametrize("first", [True, False])
def test_a_run_goes_on_with_the_same_bits_whether_it_was_replayed_before_or_is_now(
    tmp_path: Path, captured: list[CapturedUpdate], first: bool
) -> None:
    def go(folder: str, is_replayed: bool, **more: Any) -> None:
        model = tiny_model("lstm", p_dropout=0.2, n_layers=1)
        runtime = GPU | {"is_replayed": is_replayed}
        run_tiny(tmp_path / folder, model, runtime=runtime, train={"max_steps": 40}, **more)

    go("whole", is_replayed=True)
    go("halves", is_replayed=first, on_step=stop_at(23))
    go("halves", is_replayed=not first, resume=True)
    assert captured
    assert same_runs(tmp_path / "whole", tmp_path / "halves")


@needs_gpu
@pytest.mark.parametrize("mode", ["teacher", "scheduled", "free"])
@pytest.mark.parametrize("variant", [name for name in GRID if "copies" not in name])
def test_translators_learn_the_same(tmp_path: Path, captured: list[CapturedUpdate], variant: str, mode: str) -> None:
    prepared = tiny_prepared()
    name, settings = GRID[variant]

    def train(folder: Path, runtime: dict[str, Any]) -> None:
        model = tiny_pair_model(prepared, name, **(settings | {"p_dropout": 0.2}))
        teaching = {"mode": mode, "n_half": 10, "smoothing": 0.1}
        run_tiny_pairs(folder, model, prepared, runtime=runtime, teaching=teaching, train={"max_steps": 40})

    check_replayed(tmp_path, captured, train)


@needs_gpu
def test_elmo_learns_the_same(tmp_path: Path, captured: list[CapturedUpdate]) -> None:
    sizes = {"d_model": 4, "d_hidden": 8, "n_layers": 2, "d_character": 3, "filters": [2, 3], "max_characters": 8}
    train = {"n_batch": 4, "n_context": 8, "max_steps": 30, "eval_every": 15}

    def run(folder: Path, runtime: dict[str, Any]) -> None:
        text = {"train": "python-docs", "max_bytes": 50_000}
        recipe = {"data": text, "model": {"name": "elmo", "p_dropout": 0.1, **sizes}}
        api.train({**recipe, "train": train, "runtime": runtime}, out=folder, is_tested=False)

    check_replayed(tmp_path, captured, run)


@needs_gpu
def test_a_model_that_asks_the_device_is_trained_without_a_graph(
    tmp_path: Path, captured: list[CapturedUpdate]
) -> None:
    prepared = tiny_prepared()
    model = tiny_pair_model(prepared, **GRID["lstm that copies"][1])
    run_tiny_pairs(tmp_path, model, prepared, runtime=GPU)
    assert not captured


def test_what_cannot_be_captured_is_said_once_and_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def fail(*args: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(CapturedUpdate, "__init__", fail)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)

    def learn(batch: tuple[Tensor, ...], before: Any, is_fresh: bool) -> tuple[Tensor, Any]:
        return batch[0].sum(), before + 1

    updates, state = Replay(learn, torch.device("cpu"), told.append), torch.zeros(())
    for number in range(replay.N_WARM + 3):
        numbers, state, is_captured = updates((torch.full((2,), float(number)),), state, False)
        assert (numbers.item(), state.item(), is_captured) == (2 * number, number + 1, False)
    assert told == [
        "Updates are launched kernel by kernel, since one could not be captured and replayed: operation not permitted "
        "when stream is capturing"
    ]


def test_an_objective_that_cannot_be_captured_says_why_once() -> None:
    told: list[str] = []
    assert can_replay(SimpleNamespace(cannot_replay=""), told.append)  # type: ignore[arg-type]
    assert not told
    assert not can_replay(SimpleNamespace(cannot_replay="each asks for more"), told.append)  # type: ignore[arg-type]
    assert told == ["Updates are launched kernel by kernel, and none is captured and replayed: each asks for more."]
