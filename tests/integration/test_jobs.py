"""`regard compare --jobs N` and `regard study --jobs N`: several trainings at a time, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.errors import InterruptedRunError, RegardError
from regard.run import jobs
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


def kill_one(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Kill the process of the job called `name` as soon as it is started; the list is to hold its number."""
    killed = []

    def start(job: jobs.Job, logs: Path, locks: Sequence[int]) -> subprocess.Popen[bytes]:
        process = before(job, logs, locks)
        if job.name == name:
            os.kill(process.pid, signal.SIGKILL)
            killed.append(process.pid)
        return process

    before = jobs._start
    monkeypatch.setattr(jobs, "_start", start)
    return killed


@pytest.mark.slow
def test_together_they_compute_what_they_compute_alone_though_one_is_killed(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = regard.compare(plan(tmp_path), out=tmp_path / "alone")
    killed = kill_one(monkeypatch, "rnn-seed1")
    together = regard.compare(plan(tmp_path), out=tmp_path / "together", jobs=3)
    assert len(killed) == 1
    assert not any(contender.failures for contender in together.contenders), "it is trained again"
    assert together.ranking == alone.ranking
    assert [c.score for c in together.contenders] == [c.score for c in alone.contenders]
    for folder in (tmp_path / "alone" / "runs").iterdir():
        ours = load_file(tmp_path / "together" / "runs" / folder.name / "model.safetensors")
        theirs = load_file(folder / "model.safetensors")
        assert all(ours[name].equal(theirs[name]) for name in theirs)
        assert (tmp_path / "together" / "logs" / f"{folder.name}.txt").exists()


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


def test_a_gpu_needs_memory_of_the_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"cuda": 2**40, "cpu": 5 * 2**30}
    monkeypatch.setattr(jobs, "available_memory", lambda device: free[device.type])
    waiting = [jobs.Job(str(i), "", "", "", 2**30) for i in range(8)]
    jobs.check_room(waiting, 2, torch.device("cuda"))
    with pytest.raises(RegardError, match=r"8 trainings at a time need about 16.00 GB, and cpu has .* --jobs 2\."):
        jobs.check_room(waiting, 20, torch.device("cuda"))


def test_where_not_even_two_fit_it_says_to_train_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "available_memory", lambda device: 2**30)
    with pytest.raises(RegardError, match=r"Train them one by one, with --jobs 1\."):
        jobs.check_room([jobs.Job("a", "", "", "", 2**30)] * 2, 2, torch.device("cpu"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gradients", ["models=[rnn]", "n_steps=4", "d_model=8", "max_distance=6", "n_texts=4", "n_seeds=2"]),
        ("ab", ["models=[rnn]", "lengths=[4]", "n_steps=4", "d_model=4", "n_test=10", "n_seeds=2"]),
    ],
)
def test_a_study_trains_several_at_a_time_and_finds_the_same_though_one_is_killed(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, settings: list[str]
) -> None:
    (tmp_path / "text.txt").write_text(20 * TEXT)
    settings = [*settings, *([f"data={tmp_path / 'text.txt'}"] if name == "gradients" else [])]
    alone = regard.study(name, settings=settings, out=tmp_path / "alone")
    killed = kill_one(monkeypatch, "rnn-1")
    together = regard.study(name, settings=settings, out=tmp_path / "together", jobs=2)
    assert len(killed) == 1
    assert together.numbers == alone.numbers


def test_a_study_of_more_trainings_than_memory_is_refused(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "available_memory", lambda device: 2 * jobs.PROCESS_BYTES + 2**26)
    with pytest.raises(RegardError, match=r"3 trainings at a time need about 1\.\d\d GB, and cpu has .* --jobs 2\."):
        regard.study("ab", settings=["lengths=[4]", "models=[rnn, lstm, bag]"], out=tmp_path / "out", jobs=3)
    assert not (tmp_path / "out").exists()


def test_a_study_of_times_shares_nothing(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="--jobs lets processes share a machine, and the study 'cost' measures times"):
        regard.study("cost", out=tmp_path / "out", jobs=2)


def test_a_process_that_dies_before_it_reads_is_told_and_leaves_the_others_alone(tmp_path: Path) -> None:
    text, notes = "x" * 2**20, list[str]()  # more than a pipe holds
    waiting = [
        jobs.Job("first", "regard.no_such_module", "", text, 0),
        jobs.Job("second", "json.tool", str(tmp_path / "no.json"), "", 0),
    ]
    jobs.run_jobs(waiting, 1, tmp_path / "logs", notes.append)
    assert [note.split(" after")[0].split(": ")[1] for note in notes] == ["first, failed", "second, failed"]
    assert "No module named regard.no_such_module" in notes[0]
