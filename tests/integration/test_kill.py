"""kill -9 at any moment, then resume: the same bits as a run that was never stopped."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tiny_training import same_runs

SCRIPT = Path(__file__).parents[1] / "tiny_training.py"
SECTIONS: dict[str, Any] = {
    "train": {"max_steps": 40, "average": "ema", "eval_every": 4},
    "schedule": {"name": "plateau", "patience": 1},
    "checkpoint": {"every_steps": 2},
}


def train(folder: Path, kill_after: float | None = None, **given: Any) -> int:
    """Run the script to its end, or kill it some seconds after it is ready; returns how it ended."""
    text = json.dumps(
        {"folder": str(folder), "model": "lstm", "settings": {"p_dropout": 0.2}, "sections": SECTIONS} | given
    )
    process = subprocess.Popen([sys.executable, str(SCRIPT), text], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    if kill_after is not None:
        time.sleep(kill_after)
        process.kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("never") / "stopped"
    assert train(folder) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kill", [{"kill_step": 7}, {"kill_file": 4}, {"kill_file": 33}])
def test_a_run_killed_at_an_exact_point_resumes_to_the_same_bits(
    kill: dict[str, int], never_stopped: Path, tmp_path: Path
) -> None:
    assert train(tmp_path, **kill) == -signal.SIGKILL
    assert train(tmp_path) == 0
    assert same_runs(tmp_path, never_stopped)
    assert not list(tmp_path.rglob(".partial*"))


@pytest.mark.slow
def test_a_run_killed_twice_at_random_moments_resumes_to_the_same_bits(never_stopped: Path, tmp_path: Path) -> None:
    moments = random.Random(0)
    ends = [train(tmp_path, kill_after=moments.uniform(0.0, 0.7)) for _ in range(2)]
    assert -signal.SIGKILL in ends
    assert train(tmp_path) == 0
    assert same_runs(tmp_path, never_stopped)
