"""A whole update as one CUDA graph: launched by Python the first times, then captured and replayed.

A small model's update is hundreds of kernels of a few microseconds each, and Python takes longer to launch them than a
GPU to compute them. A graph launches them all at once. It reads and writes fixed memory, so a batch is copied into its
place before a replay, and a state that is carried from update to update stays in one place. One graph serves one shape
of batch; all of them share their memory, since they never run at the same time.

The kernels, their order and their random numbers are those of the update that was captured: the bits are the same.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

N_WARM = 2
"""Updates before the first is captured: kernels are compiled and tuned, buffers of the optimiser made. Of every other
shape one is launched: its own kernels are loaded."""
MAX_GRAPHS = 256
"""Shapes beyond these stay as they are: a graph of a thousand kernels takes some megabytes."""

Batch = tuple[Tensor, ...]
Learn = Callable[[Batch, Any, bool], tuple[Tensor, Any]]
"""One update on the device: the batch, the state before it and whether the batch begins a new text, in which case there
is none, give the numbers to tell and the state after."""


class Replay:
    """Makes updates by `learn`, and replays it for shapes that it has seen before."""

    def __init__(self, learn: Learn, device: torch.device, tell: Callable[[str], None]) -> None:
        self._learn, self._device, self._tell = learn, device, tell
        self._n_seen: Counter[object] = Counter()
        self._graphs: dict[object, CapturedUpdate] = {}
        self._pool: Any = None
        self._is_on = True

    def __call__(self, batch: Batch, before: Any, is_fresh: bool) -> tuple[Tensor, Any, bool]:
        """`batch` lies in pinned memory. Returns what `learn` does, and whether a graph was captured for it."""
        key = (tuple(tensor.shape for tensor in batch), is_fresh, None if is_fresh else shape_of(before))
        graph, is_new = self._graphs.get(key), False
        if graph is None and self._is_on:
            self._n_seen[key] += 1
            n_warm = 1 if self._graphs else N_WARM
            if self._n_seen[key] > n_warm and len(self._graphs) < MAX_GRAPHS:
                graph = self._capture(key, batch, before, is_fresh)
                is_new = graph is not None
        if graph is not None:
            return *graph.replay(batch, before), is_new
        uploaded = tuple(tensor.to(self._device, non_blocking=True) for tensor in batch)
        return *self._learn(uploaded, before, is_fresh), False

    def _capture(self, key: object, batch: Batch, before: Any, is_fresh: bool) -> CapturedUpdate | None:
        """Capture an update; None, and a note, where it cannot be done."""
        try:
            if self._pool is None:
                gc.collect()
                torch.cuda.empty_cache()  # graphs cannot use what the first updates took
                self._pool = torch.cuda.graph_pool_handle()
            self._graphs[key] = CapturedUpdate(self._learn, self._device, batch, before, is_fresh, self._pool)
        except RuntimeError as error:
            self._is_on = False
            reason = str(error).strip().partition("\n")[0]
            self._tell(f"Updates are launched kernel by kernel, since one could not be captured and replayed: {reason}")
            return None
        return self._graphs[key]


class CapturedUpdate:
    """One update of one shape of batch."""

    def __init__(
        self, learn: Learn, device: torch.device, batch: Batch, before: Any, is_fresh: bool, pool: Any
    ) -> None:
        self._batch = tuple(tensor.to(device) for tensor in batch)
        self._before = None if is_fresh else map_state(torch.clone, before)
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(aside):
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self._numbers, self._after = learn(self._batch, self._before, is_fresh)
                if self._before is not None and shape_of(self._after) == shape_of(self._before):
                    map_state(Tensor.copy_, self._before, self._after)
                    self._after = self._before
            finally:
                self._graph.capture_end()

    def replay(self, batch: Batch, before: Any) -> tuple[Tensor, Any]:
        """The numbers and the state after, which are valid until the next update."""
        for place, tensor in zip(self._batch, batch, strict=True):
            place.copy_(tensor, non_blocking=True)
        if before is not self._before and self._before is not None:
            map_state(Tensor.copy_, self._before, before)
        self._graph.replay()
        return self._numbers, self._after


def map_state(change: Callable[..., Tensor], *states: Any) -> Any:
    """A state with every tensor changed; several states of one shape are walked side by side.

    >>> map_state(lambda a, b: a + b, (1.0, (torch.ones(1),)), (1.0, (torch.ones(1),)))
    (1.0, (tensor([2.]),))
    """
    first = states[0]
    if isinstance(first, Tensor):
        return change(*states)
    if isinstance(first, (tuple, list)):
        return type(first)(map_state(change, *parts) for parts in zip(*states, strict=True))
    return first


def shape_of(state: Any) -> Any:
    """What two states must have in common for one to be copied over the other.

    >>> shape_of((torch.ones(2, 3), (7, None)))
    ((torch.Size([2, 3]), torch.float32), (7, None))
    """
    if isinstance(state, Tensor):
        return state.shape, state.dtype
    return tuple(shape_of(part) for part in state) if isinstance(state, (tuple, list)) else state
