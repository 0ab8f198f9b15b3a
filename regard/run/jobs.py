"""Several processes at a time, most often trainings, each into its own run folder.

    python -m regard.run.jobs FOLDER < config.yaml

A small model leaves most of a GPU idle, so a dozen of them take hardly longer than one. Every training computes what it
would compute alone; one that dies leaves the others alone. What a process says goes into a log of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml

from regard.config import RunConfig
from regard.errors import InterruptedRunError, RegardError
from regard.run import engine
from regard.tasks.table import build_config
from regard.training.memory import MemoryEstimate, available_memory, readable

INTERRUPTED = 130  # the exit code of a process that saved its run and stopped
PAUSE = 0.2  # seconds between two looks at the processes
PROCESS_BYTES = 600 * 2**20  # what torch itself takes of a machine, or of a GPU, in every process
# Host memory of a process that trains on a GPU: torch, CUDA's libraries and pinned buffers.
HOST_BYTES = 2 * 2**30


@dataclass(frozen=True)
class Job:
    """A module that is to be run with one argument and a text on its standard input."""

    name: str
    module: str
    argument: str
    text: str
    n_bytes: int
    """Memory it takes on the device, what torch takes included."""


def plan_training(config: RunConfig, folder: Path, memory: MemoryEstimate | None, n_jobs: int) -> Job:
    """A training in `folder`, begun or gone on with, as one of `n_jobs` that use the machine's CPUs once together."""
    if config.runtime.n_threads is None:
        config = config.with_section("runtime", config.runtime.replace(n_threads=share_threads(n_jobs)))
    n_bytes = PROCESS_BYTES + (0 if memory is None else memory.total)
    return Job(folder.name, "regard.run.jobs", str(folder), config.to_yaml(), n_bytes)


def share_threads(n_jobs: int) -> int:
    """CPU threads of each of `n_jobs` processes."""
    return max(1, min(torch.get_num_threads(), (os.cpu_count() or 1) // n_jobs))


def check_room(jobs: Sequence[Job], n_jobs: int, device: torch.device) -> None:
    """Refuse more jobs at a time than there is memory for, of the device and, where that is a GPU, of the machine."""
    needed = {device: sorted((job.n_bytes for job in jobs), reverse=True)}
    if device.type != "cpu":
        needed[torch.device("cpu")] = [HOST_BYTES] * len(jobs)
    for place, sizes in needed.items():
        free = available_memory(place)
        if free is None or sum(sizes[:n_jobs]) <= free:
            continue
        fits = max((n for n in range(1, n_jobs) if sum(sizes[:n]) <= free), default=1)
        raise RegardError(
            f"{min(n_jobs, len(jobs))} trainings at a time need about {readable(sum(sizes[:n_jobs]))}, and {place} has "
            f"{readable(free)} free. {'Take' if fits > 1 else 'Train them one by one, with'} --jobs {fits}."
        )


def run_jobs(
    jobs: Sequence[Job], n_jobs: int, logs: Path, note: Callable[[str], None], locks: Sequence[int] = ()
) -> None:
    """Run all jobs, `n_jobs` at a time. Those that fail are told, and stay unfinished.

    Ctrl-C reaches every process: each finishes its update and saves; then it is raised here. All of them keep `locks`,
    open files of this process, so that what is locked stays so until the last of them has ended.
    """
    logs.mkdir(parents=True, exist_ok=True)
    waiting, n_done = list(jobs), 0
    running: dict[subprocess.Popen[bytes], tuple[Job, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                job = waiting.pop(0)
                running[_start(job, logs, locks)] = job, time.monotonic()
            time.sleep(PAUSE)
            for process in [p for p in running if p.poll() is not None]:
                job, began = running.pop(process)
                n_done += 1
                how = "done" if process.returncode == 0 else _read_reason(job, process.returncode, logs)
                note(f"{n_done} of {len(jobs)}: {job.name}, {how} after {time.monotonic() - began:.0f} s")
                if process.returncode == INTERRUPTED:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        _stop(running)
        raise


def _start(job: Job, logs: Path, locks: Sequence[int]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", job.module, job.argument]
    path = logs / f"{job.name}.txt"
    path.unlink(missing_ok=True)
    with open(path, "xb") as log:  # a new file: a link that lay there would lead to another one
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=tuple(locks))
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:  # it died before it had read all: its log says why
        stdin.write(job.text.encode())
    return process


def _read_reason(job: Job, code: int, logs: Path) -> str:
    said = (logs / f"{job.name}.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if code < 0:
        return f"ended by signal {-code} ({signal.Signals(-code).name})"
    return f"failed: {said[-1] if said else f'it ended with code {code}'}"


def _stop(running: Iterable[subprocess.Popen[bytes]]) -> None:
    """Let every process finish its update and save."""
    processes = list(running)
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in processes:
        process.wait()


def main() -> int:
    """Train the config on standard input into the folder that is named."""
    folder = Path(sys.argv[1])
    try:
        config = build_config(yaml.safe_load(sys.stdin.read()), is_complete=True)
        engine.train(config, folder, resume=(folder / "config.yaml").exists(), is_tested=False)
    except InterruptedRunError as error:
        print(error)
        return INTERRUPTED
    except RegardError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
