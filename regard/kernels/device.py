"""What the device at hand is asked before a kernel is chosen: which card, which precision, which attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock

import torch
from torch import Tensor


def device_guard(device: torch.device) -> AbstractContextManager[object]:
    """Make streams, events, graphs and kernels of a block those of `device`, not those of the first GPU."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@cache
def has_dependent_launch(device: torch.device) -> bool:
    """Whether a kernel may start while the one before it ends (programmatic dependent launch): from Hopper on.

    A kernel launched so runs `gdc_wait` before it reads what another kernel wrote, and `gdc_launch_dependents` after
    that: so all kernels but the one just before it are over when it starts, and what those wrote may be read without
    waiting. On the CPU, where kernels are only interpreted, there is nothing to wait for.
    """
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def is_lowered(x: Tensor) -> bool:
    """Whether autocast is on, for a tensor on a GPU."""
    return x.device.type == "cuda" and torch.is_autocast_enabled("cuda")


def lower_precision(x: Tensor) -> Tensor:
    """Convert x to the type that autocast multiplies in, on a GPU; elsewhere return x itself.

    Autocast keeps the sum that runs through a Transformer in float32, since an embedding is. In bfloat16 it takes half
    the memory and time to read: 12.8 GiB and 68.2 ms a step of GPT-2 124M (32 x 1024, one H200) become 11.6 GiB and
    65.5 ms. Norms and the softmax compute in float32 all the same.
    """
    return x.to(torch.get_autocast_dtype("cuda")) if is_lowered(x) else x


def at_least_float32(x: Tensor) -> Tensor:
    """Convert low precision to float32: sums over a vocabulary need more digits than such logits have."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


_blocks_lock = Lock()
_n_blocks, _was_enabled = 0, True


@contextmanager
def sdpa_backend_for_any_shape() -> Iterator[None]:
    """Leave fused attention inside the block to backends that take any shape as it comes.

    cuDNN's, which torch prefers on new GPUs, plans anew for each shape. Batches of sentences hardly ever repeat one: on
    an H200 a small Transformer's updates took 0.4 s with plans, and 0.02 without. The choice is torch's for the whole
    process, so blocks that overlap, nested or in several threads, are counted: the last one to end puts it back.
    """
    global _n_blocks, _was_enabled
    with _blocks_lock:
        if _n_blocks == 0:
            _was_enabled = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
            torch.backends.cuda.enable_cudnn_sdp(False)
        _n_blocks += 1
    try:
        yield
    finally:
        with _blocks_lock:
            _n_blocks -= 1
            if _n_blocks == 0:
                torch.backends.cuda.enable_cudnn_sdp(_was_enabled)
