"""Every model that reads pairs through one harness: adding one to the table is what tests it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tiny_pairs import EVERYTHING, GRID, TEXTS, run_tiny_pairs, tiny_pair_model, tiny_prepared, tiny_task
from tiny_training import same_runs, stop_at

from regard.decode.config import BeamConfig
from regard.decode.translate import Translator
from regard.models.seq2seq import Seq2Seq
from regard.models.table import MODELS, model_config, models_for
from regard.training.checkpoint import checkpoint_folders
from regard.training.weights import load_weights, named_weights, read_tensors, write_weights

SCRIPT = Path(__file__).parents[1] / "tiny_pairs.py"
VARIANTS = pytest.mark.parametrize("variant", GRID)
STATE = ("model", "average", "optimizer", "random", "best")


def built(variant: str, is_shared: bool = True, kind: str = "word", **changes: Any) -> tuple[Seq2Seq, Any]:
    name, settings = GRID[variant]
    prepared = tiny_prepared(TEXTS, TEXTS[:4], kind=kind, is_shared=is_shared)
    return tiny_pair_model(prepared, name, **(settings | changes)), prepared


def translated(model: Seq2Seq, prepared: Any, beam: int, sources: list[str]) -> list[str]:
    config = BeamConfig(beam=beam, max_ratio=2.0)
    translator = Translator([model], prepared.source_tokenizer, prepared.target_tokenizer, config)
    return [best[0].text for best in translator.all([translator.read(source) for source in sources])]


def test_every_name_of_the_table_is_in_the_grid() -> None:
    assert {name for name, _ in GRID.values()} == set(models_for("translation"))


@pytest.mark.parametrize("name", models_for("translation"))
def test_every_setting_says_what_it_means(name: str) -> None:
    assert all(line.doc for line in MODELS[name].config.help())


@VARIANTS
def test_a_config_round_trips_through_yaml(variant: str) -> None:
    name, settings = GRID[variant]
    config = model_config(name, settings)
    assert model_config(name, yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config


@pytest.mark.parametrize("is_shared", [True, False], ids=["one vocabulary", "two"])
@VARIANTS
def test_every_parameter_gets_a_finite_gradient_that_is_not_zero(variant: str, is_shared: bool) -> None:
    """Through the objective, and in free running too, where what is read has no gradient but what is written has."""
    tying = {} if is_shared else {"tying": "none"}
    for mode in ("teacher", "free"):
        model, prepared = built(variant, is_shared, **tying)
        objective = tiny_task(model, prepared, mode=mode, max_tokens=1000)
        loss = objective.loss(model, objective.body(model), objective.at(0).tensors, None, 0)
        loss.goal.backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, (mode, name)
            assert parameter.grad.isfinite().all(), (mode, name)
            assert parameter.grad.abs().max() > 0, (mode, name)


@pytest.mark.parametrize(
    ("variant", "is_shared"), [*((variant, True) for variant in GRID), ("transformer to lstm", False)]
)
def test_eight_pairs_can_be_memorised_and_are_translated_back(variant: str, is_shared: bool) -> None:
    model, prepared = built(variant, is_shared, d_model=32)
    chosen = TEXTS[1::3]
    assert len(chosen) == 8
    some = tiny_prepared(chosen, chosen, is_shared=is_shared)
    objective = tiny_task(model, some, max_tokens=1000, smoothing=0.0)
    tensors, n_tokens, _ = objective.at(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = objective.loss(model, objective.body(model), tensors, None, 0)
        optimizer.zero_grad()
        (loss.goal / n_tokens).backward()
        optimizer.step()
        if loss.nats.item() / n_tokens < 0.05:
            break
    else:
        pytest.fail(f"still {loss.nats.item() / n_tokens:.3f} nats a token after 300 steps")
    for beam in (1, 4):
        assert translated(model, prepared, beam, [source for source, _ in chosen]) == [target for _, target in chosen]


@VARIANTS
def test_saved_and_loaded_it_translates_the_same(variant: str, tmp_path: Path) -> None:
    model, prepared = built(variant)
    write_weights(named_weights(model), tmp_path / "model.safetensors")
    again, _ = built(variant, seed=8)
    sources = [source for source, _ in TEXTS[:6]]
    before = translated(model, prepared, 3, sources)
    assert translated(again, prepared, 3, sources) != before
    load_weights(again, read_tensors(tmp_path / "model.safetensors"))
    assert translated(again, prepared, 3, sources) == before


@pytest.mark.parametrize("variant", ["lstm to gru", "vaswani"])
def test_a_stopped_and_resumed_run_gives_the_bits_of_one_never_stopped(variant: str, tmp_path: Path) -> None:
    """With dropout, BPE dropout, scheduled sampling, an average and parts."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    changes = {"kind": "bpe", "p_dropout": 0.2}
    run_tiny_pairs(whole, *built(variant, **changes), **EVERYTHING)
    for step in (2, 4):
        result = run_tiny_pairs(parts, *built(variant, **changes), resume=True, on_step=stop_at(step), **EVERYTHING)
        assert (result.reason, result.step) == ("interrupted", step)
        torch.rand(5)  # whatever the process does in between must not matter
    result = run_tiny_pairs(parts, *built(variant, **changes), resume=True, **EVERYTHING)
    assert (result.reason, result.step) == ("max_steps", 6)
    assert same_runs(whole, parts)
    for file in STATE:
        a, b = (folder / "state" / "step-00000006" / f"{file}.safetensors" for folder in (whole, parts))
        assert a.read_bytes() == b.read_bytes(), file


def test_the_test_of_resuming_would_see_lost_random_numbers(tmp_path: Path) -> None:
    """Scheduled sampling alone draws here."""
    changes: dict[str, Any] = {"teaching": {"mode": "scheduled", "decay": "linear", "n_half": 2}}
    run_tiny_pairs(tmp_path / "a", *built("lstm to gru"), **changes)
    run_tiny_pairs(tmp_path / "b", *built("lstm to gru"), on_step=stop_at(2), **changes)
    latest = checkpoint_folders(tmp_path / "b")[-1] / "random.safetensors"
    latest.write_bytes((checkpoint_folders(tmp_path / "a")[-1] / "random.safetensors").read_bytes())
    run_tiny_pairs(tmp_path / "b", *built("lstm to gru"), resume=True, **changes)
    assert not same_runs(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_bits_of_one_never_stopped(tmp_path: Path) -> None:
    job = {"folder": str(tmp_path / "killed"), "model": {"encoder": "lstm", "decoder": "transformer"}, "kill_step": 5}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(job)],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-9, "")
    prepared = tiny_prepared(kind="bpe")
    assert [f.name for f in checkpoint_folders(tmp_path / "killed")] == ["step-00000003"]
    for folder in ("killed", "never stopped"):
        model = tiny_pair_model(prepared, **job["model"], p_dropout=0.2)  # type: ignore[arg-type]
        run_tiny_pairs(tmp_path / folder, model, prepared, resume=True, **EVERYTHING)
    assert same_runs(tmp_path / "killed", tmp_path / "never stopped")
