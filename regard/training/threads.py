"""How many CPU threads a run takes where `runtime.n_threads` is null.

    threads = min(threads that torch would take, CPUs this process may use, CPUs that nobody else keeps busy)

The threads of an operation wait for the slowest among them: with two threads on two CPUs that another program keeps
busy, a run was measured to take ten times as long as with one. The number decides in which order sums are rounded, so
it is part of a run's state, and a resumed run takes it again. Where OMP_NUM_THREADS is set, somebody has chosen.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch


def choose_threads() -> tuple[int, str | None]:
    """The number of threads, and a sentence where it is less than torch would take."""
    wanted = torch.get_num_threads()
    if "OMP_NUM_THREADS" in os.environ:
        return wanted, None
    allowed = min(wanted, _usable_cpus())
    chosen = max(1, min(allowed, round((os.cpu_count() or 1) - _busy_cpus())))
    if chosen == wanted:
        return wanted, None
    why = "other programs keep this machine busy" if chosen < allowed else "this process may use no more CPUs"
    return chosen, f"Taking {chosen} of {wanted} CPU threads: {why}. Set runtime.n_threads to choose another number."


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
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1  # this process runs too
    except (OSError, ValueError, IndexError):
        return minute
    return min(minute, running)
