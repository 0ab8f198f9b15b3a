"""Which card the kernels of a block run on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def on_device(device: torch.device) -> AbstractContextManager[object]:
    """The block in which streams, events, graphs and kernels are those of `device`, not those of the first GPU."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
