"""Where a comparison ran: enough for a reader to judge its seconds."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy
import torch

from regard import __version__


def versions() -> dict[str, str]:
    """The versions that decide numbers and speed."""
    return {
        "regard": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
    }


def hardware() -> str:
    """Processor, cores, memory, and the GPU where there is one."""
    n_cores, n_threads = os.cpu_count() or 1, torch.get_num_threads()
    words = [f"{_processor()}, {n_cores} core{'s' * (n_cores > 1)}, {n_threads} thread{'s' * (n_threads > 1)}"]
    memory = _memory_gb()
    if memory is not None:
        words.append(f"{memory:.0f} GB of memory")
    if torch.cuda.is_available():
        words.append(torch.cuda.get_device_name(0))
    return ", ".join(words)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):
        return None
