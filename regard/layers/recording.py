"""The recording of kernels that are to be replayed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def recorded(
    run: Callable[[], Tensor], restore: Callable[[], None] | None = None
) -> tuple[torch.cuda.CUDAGraph, Tensor]:
    """What `run` launches as a CUDA graph, and where its result lies after each replay.

    It is run twice before, so that kernels are compiled and their workspaces taken; `restore` undoes what that did.
    """
    graph = torch.cuda.CUDAGraph()
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(2):
            run()
            if restore is not None:
                restore()
    torch.cuda.current_stream().wait_stream(aside)
    with torch.cuda.graph(graph):
        result = run()
    return graph, result
