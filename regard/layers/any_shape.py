"""Fused attention over batches that each have a shape of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def attention_of_any_shape() -> Iterator[None]:
    """The block in which fused attention is left to kernels that take any shape as it comes.

    cuDNN's, which torch prefers on new GPUs, are planned anew for each shape. Batches of sentences hardly ever repeat
    one: on an H200 a small Transformer's updates took 0.4 s with plans, and 0.02 without.
    """
    was_enabled = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was_enabled)
