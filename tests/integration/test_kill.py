"""kill -9 at any moment, then resume: the same bits as a run that was never stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_training import same_runs

import regard
from regard.training.checkpoint import is_finished

SCRIPT = Path(__file__).parents[1] / "tiny_training.py"
SECTIONS: dict[str, Any] = {
    "train": {"max_steps": 40, "average": "ema", "eval_every": 4},
    "schedule": {"name": "plateau", "patience": 1},
    "checkpoint": {"every_steps": 2},
}
# A checkpoint reaches the disk in about ten steps: each file, the folder aside, the folder of states.
KILLS: dict[str, dict[str, float]] = {
    "between two updates": {"kill_step": 7},
    "in the first checkpoint": {"kill_file": 4},
    "when the first checkpoint is complete but not yet named": {"kill_file": 11},
    "in a later checkpoint": {"kill_file": 35},
    "in one after that": {"kill_file": 38},
    "at a random moment": {"kill_after": 0.21},
    "at another random moment": {"kill_after": 0.43},
}


def job(folder: Path, **kill: float) -> dict[str, Any]:
    return {"folder": str(folder), "model": "lstm", "settings": {"p_dropout": 0.2}, "sections": SECTIONS} | kill


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_bits_of_one_never_stopped(tmp_path: Path) -> None:
    jobs = [job(tmp_path / "never stopped")]
    for when, kill in KILLS.items():
        jobs += [job(tmp_path / when, **kill), job(tmp_path / when)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(jobs)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    codes = done.stdout.split()
    assert codes[0] == "0"
    for when, code, resumed in zip(KILLS, codes[1::2], codes[2::2], strict=True):
        # A fast machine may be done before a kill that comes by the clock.
        assert code == "-9" or ("kill_after" in KILLS[when] and code == "0"), when
        assert resumed == "0", when
    for when in KILLS:
        assert same_runs(tmp_path / when, tmp_path / "never stopped"), when
        assert not list((tmp_path / when).rglob(".partial*")), when


class Killed(BaseException):
    """Ends a command where SIGKILL would, before anything more is written."""


def test_counts_that_are_killed_as_they_are_counted_further_are_counted_again(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured of them is on the disk before the counts are."""

    def kill(*_: object) -> None:
        raise Killed

    text = tmp_path / "text.txt"
    text.write_text("".join(f"the {word} sat on the {i % 7} mats\n" for i in range(900) for word in "ab"))
    given = {"data": {"train": str(text)}, "model": {"name": "ngram", "order": 2}}
    more = ["train.max_tokens=5000"]
    wanted = regard.train(given, out=tmp_path / "wanted", settings=more).evaluate().to_dict()
    run = regard.train(given, out=tmp_path / "run", settings=["train.max_tokens=1000"]).folder
    with monkeypatch.context() as patch:
        patch.setattr("regard.tasks.ngram_counts.write_atomically", kill)
        with pytest.raises(Killed):
            regard.train(out=run, resume=True, settings=more)
    assert not is_finished(run)
    assert regard.train(out=run, resume=True, settings=more).evaluate().to_dict() == wanted
