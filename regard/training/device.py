"""Where a run computes, by how many threads, and the switches of torch that it turns on for its own time only."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock, get_ident

import torch

from regard.errors import RegardError
from regard.training.config import RuntimeConfig, check_device
from regard.training.freed_memory import keep_freed_memory
from regard.training.randomness import random_tensors, restore_random, seed_everything

FLOPS_PER_THREAD = 1.6e9
"""A thread more pays off from so many FLOPs an update on."""


def pick_device(name: str, key: str = "runtime.device") -> torch.device:
    """The device that `auto`, `cpu`, `cuda` or `cuda:N` means on this machine; `key` is what it was asked for with.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    check_device(name)
    if device_type(name) == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RegardError(
            f"The device '{name}' was asked for, but torch {torch.__version__} sees no GPU here. "
            f"Use {key}=cpu or auto, or install a CUDA build of torch."
        )
    device = torch.device("cuda" if name == "auto" else name)
    if device.index is not None and device.index >= torch.cuda.device_count():
        n = torch.cuda.device_count()
        there = "one GPU: cuda:0" if n == 1 else f"{n} GPUs: cuda:0 to cuda:{n - 1}"
        raise RegardError(f"The device '{name}' was asked for, but this machine has {there}.")
    return device


def device_type(name: str) -> str:
    """`cpu` or `cuda`: the kind of device that `name` means here, also where it is missing."""
    return "cpu" if name == "cpu" or (name == "auto" and not torch.cuda.is_available()) else "cuda"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The block in which multiplications run in bfloat16, where the config asks for it."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if precision == "bf16" else nullcontext()


@contextmanager
def session(runtime: RuntimeConfig, seed: int) -> Iterator[None]:
    """Threads, determinism, TF32 and seeds of one run; all as they were before, when it is over.

    cuDNN's recurrent kernels use TF32 by torch's own default; `tf32` asks for it in every other product too.
    """
    outer = random_tensors()
    n_threads = torch.get_num_threads()
    matmul_precision = torch.get_float32_matmul_precision()
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    if runtime.n_threads is not None:
        torch.set_num_threads(runtime.n_threads)
    if runtime.is_deterministic:
        # cuBLAS is deterministic only with a workspace of its own; this is read when the first handle is made.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    if runtime.precision == "tf32" and device_type(runtime.device) == "cuda":
        torch.set_float32_matmul_precision("high")
    seed_everything(seed)
    try:
        with keep_freed_memory() if device_type(runtime.device) == "cpu" else nullcontext():
            yield
    finally:
        restore_random(outer)
        torch.set_num_threads(n_threads)
        torch.set_float32_matmul_precision(matmul_precision)
        torch.use_deterministic_algorithms(was_deterministic)


def choose_threads(flops: float = math.inf) -> tuple[int, str | None]:
    """Choose how many CPU threads a run takes where `runtime.n_threads` is null; a sentence where others are busy.

        threads = min(threads that torch would take, CPUs this process may use, CPUs that nobody else keeps busy,
                      FLOPs of an update / 1.6e9)

    The threads of an operation wait for the slowest among them: with two threads on two CPUs that another program keeps
    busy, a run was measured to take 10 to 30 times as long as with one. Small operations gain nothing by a second one:
    an update of 8 x 64 tokens took an RNN of width 64 6.0 ms with one thread and 7.7 with two, a Transformer 6.9 and
    6.3, and one of width 256 42 and 25 (2 cores, the best of 3 s).

    The number decides in which order sums are rounded, so it is part of a run's state, and a resumed run takes it
    again. Where OMP_NUM_THREADS is set, somebody has chosen.
    """
    wanted = torch.get_num_threads()
    if "OMP_NUM_THREADS" in os.environ:
        return wanted, None
    wanted = min(wanted, max(1, round(min(flops / FLOPS_PER_THREAD, wanted))))
    allowed = min(wanted, _usable_cpus())
    chosen = max(1, min(allowed, round((os.cpu_count() or 1) - _busy_cpus())))
    if chosen == wanted:
        return wanted, None
    why = "other programs keep this machine busy" if chosen < allowed else "this process may use no more CPUs"
    return chosen, f"Taking {chosen} of {wanted} CPU threads: {why}. Set runtime.n_threads to choose another number."


_COUNTING = Lock()
_takers: list[int] = []
"""The threads of Python that are inside `take_free_threads`, as often as they are."""
_n_before = 1
"""How many CPU threads there were before the first of them."""


@contextmanager
def take_free_threads() -> Iterator[None]:
    """Take as many CPU threads as `choose_threads` finds free, for a block or for the function that it decorates.

    The number is of the Python thread that sets it, and the one that was set last is what new Python threads begin
    with. So one that begins inside the block of another would take that one's few for its own, and leave them behind.
    """
    global _n_before
    with _COUNTING:
        n_threads = _n_before if _takers and get_ident() not in _takers else torch.get_num_threads()
        if not _takers:
            _n_before = n_threads
        _takers.append(get_ident())
        torch.set_num_threads(n_threads)
        torch.set_num_threads(choose_threads()[0])
    try:
        yield
    finally:
        with _COUNTING:
            _takers.remove(get_ident())
            torch.set_num_threads(n_threads)


def _usable_cpus() -> int:
    """CPUs of this process: its affinity, and a container's quota (cgroup v2, then v1) rounded up."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    root = Path("/sys/fs/cgroup")
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = (int(part) for name in names for part in (root / name).read_text().split())
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
        if quota > 0:
            n = min(n, max(1, -(-quota // period)))
    return n


def _busy_cpus() -> float:
    """CPUs that others kept busy for the last minute and keep busy now.

    The mean of a minute alone would count a program that has just ended, the number of this moment one that runs for
    a moment only.
    """
    try:
        minute = os.getloadavg()[0]
    except OSError:
        return 0.0
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
        states = [
            (task / "stat").read_text().rpartition(")")[2].split()[0] for task in Path("/proc/self/task").iterdir()
        ]
    except (OSError, ValueError, IndexError):
        return minute
    return min(minute, running - states.count("R"))  # the threads of this process are not others'
