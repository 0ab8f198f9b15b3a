"""Whether a kernel may start while the one before it ends (programmatic dependent launch). Imported on a GPU only.

A kernel launched so runs `gdc_wait` before it reads what another kernel wrote, and `gdc_launch_dependents` after that:
so all kernels but the one just before it are over when it starts, and what those wrote may be read without waiting.
"""

from functools import cache

import torch


@cache
def launches_early(device: torch.device) -> bool:
    """From Hopper on. (On the CPU, where kernels are only interpreted, there is nothing to wait for.)"""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
