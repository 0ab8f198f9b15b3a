"""A run of pairs that was killed goes on to the same bits; and the tests of resuming would see what is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_pairs import EVERYTHING, GRID, TEXTS, run_tiny_pairs, tiny_pair_model, tiny_prepared
from tiny_training import exchange_random_numbers, same_runs, stop_at

from regard.models.seq2seq import Seq2Seq
from regard.training.checkpoint import checkpoint_folders

SCRIPT = Path(__file__).parents[2] / "tiny_pairs.py"


def built(variant: str) -> tuple[Seq2Seq, Any]:
    name, settings = GRID[variant]
    prepared = tiny_prepared(TEXTS, TEXTS[:4])
    return tiny_pair_model(prepared, name, **settings), prepared


def test_the_test_of_resuming_would_see_lost_random_numbers(tmp_path: Path) -> None:
    """Scheduled sampling alone draws here."""
    changes: dict[str, Any] = {"teaching": {"mode": "scheduled", "decay": "linear", "n_half": 2}}
    run_tiny_pairs(tmp_path / "a", *built("lstm to gru"), **changes)
    run_tiny_pairs(tmp_path / "b", *built("lstm to gru"), on_step=stop_at(2), **changes)
    exchange_random_numbers(checkpoint_folders(tmp_path / "b")[-1], checkpoint_folders(tmp_path / "a")[-1])
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
