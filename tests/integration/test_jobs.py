"""`regard compare --jobs N`: several trainings at a time, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import regard
from regard.compare import jobs
from regard.errors import InterruptedRunError, RegardError
from regard.training.progress import Silent

TEXT = "".join(f"The {who} sat on the {what}.\n\n\n" for who in ("cat", "dog", "man") * 9 for what in ("mat", "roof"))


def plan(folder: Path, **changes: Any) -> dict[str, Any]:
    (folder / "text.txt").write_text(TEXT)
    return {
        "contenders": {"rnn": None, "transformer": {"model": {"name": "transformer", "n_heads": 1}}},
        "data": {"train": str(folder / "text.txt"), "p_valid": 0.2, "p_test": 0.2},
        "tokenizer": {"kind": "byte", "vocab_size": None},
        "budget": "2000tokens",
        "params": 6000,
        "seeds": 2,
        "train": {"n_batch": 2, "n_context": 8},
        "runtime": {"device": "cpu", "n_threads": 1},
        **changes,
    }


@pytest.mark.slow
def test_together_they_compute_what_they_compute_alone(tmp_path: Path, own_cache: Path) -> None:
    alone = regard.compare(plan(tmp_path), out=tmp_path / "alone")
    together = regard.compare(plan(tmp_path), out=tmp_path / "together", jobs=3)
    assert together.ranking == alone.ranking
    assert [c.score for c in together.contenders] == [c.score for c in alone.contenders]
    for folder in (tmp_path / "alone" / "runs").iterdir():
        ours = load_file(tmp_path / "together" / "runs" / folder.name / "model.safetensors")
        theirs = load_file(folder / "model.safetensors")
        assert all(ours[name].equal(theirs[name]) for name in theirs)
        assert (tmp_path / "together" / "logs" / f"{folder.name}.txt").exists()


@pytest.mark.slow
def test_one_that_is_killed_leaves_the_others_alone_and_is_trained_again(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []

    def start(job: jobs.Job, n_jobs: int, logs: Path) -> subprocess.Popen[bytes]:
        process = before(job, n_jobs, logs)
        if job.name == "rnn-seed1":
            os.kill(process.pid, signal.SIGKILL)
            killed.append(process.pid)
        return process

    before = jobs._start
    monkeypatch.setattr(jobs, "_start", start)
    found = regard.compare(plan(tmp_path), out=tmp_path / "out", jobs=2)
    assert len(killed) == 1
    assert [len(contender.runs) for contender in found.contenders] == [2, 2]
    assert not any(contender.failures for contender in found.contenders)


@pytest.mark.slow
def test_ctrl_c_saves_every_training_and_the_comparison_goes_on(tmp_path: Path, own_cache: Path) -> None:
    given = plan(tmp_path, budget="2000000tokens", seeds=1)

    def press_ctrl_c(text: str) -> None:
        if "at a time" in text:
            signal.setitimer(signal.ITIMER_REAL, 0.2)

    def wait_until_both_train(*_: object) -> None:
        runs, until = tmp_path / "out" / "runs", time.monotonic() + 60
        while len(list(runs.glob("*/metrics.jsonl"))) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        raise KeyboardInterrupt

    class Watched(Silent):
        def note(self, text: str) -> None:
            press_ctrl_c(text)

    before = signal.signal(signal.SIGALRM, wait_until_both_train)
    try:
        with pytest.raises(InterruptedRunError, match="Stopped with 0 of 2 trainings finished"):
            regard.compare(given, out=tmp_path / "out", jobs=2, reporter=Watched())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(list((tmp_path / "out" / "runs").glob("*/state/step-*"))) >= 2


def test_a_budget_of_the_clock_is_not_shared(tmp_path: Path, own_cache: Path) -> None:
    with pytest.raises(RegardError, match="--jobs lets trainings share a machine, and --seconds measures"):
        regard.compare(plan(tmp_path, budget=None), out=tmp_path / "out", seconds=1.0, jobs=2)
    assert not (tmp_path / "out").exists(), "refused before anything is measured or written"


def test_more_trainings_than_memory_are_refused(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "available_memory", lambda device: 2 * jobs.PROCESS_BYTES + 2**26)
    with pytest.raises(RegardError, match=r"4 trainings at a time need about 2\.\d\d GB, and cpu has .* --jobs 2\."):
        regard.compare(plan(tmp_path), out=tmp_path / "out", jobs=4)
