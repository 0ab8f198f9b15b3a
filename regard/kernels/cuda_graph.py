"""CUDA graphs: kernels that are captured once and replayed, and a pool of what was captured and is not in use.

A graph reads and writes fixed memory, so whatever it works on must stay where it is: an input is copied into its place
before a replay, and a result is valid until the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, RLock
from typing import Generic, TypeVar

import torch
from torch import Tensor

MIN_STEPS = 16
"""Replays for which a capture pays: it takes as long as a hundred steps, but a graph is used again by later texts."""

T = TypeVar("T")

_CAPTURING = Lock()  # a capture waits for the device, which nothing may do during another


class CapturedGraph:
    """What a function launched on the GPU, to be launched again without Python."""

    def __init__(self, run: Callable[[], Tensor], restore: Callable[[], None] | None = None) -> None:
        """Run twice first, so that kernels are compiled and their workspaces taken; `restore` undoes what that did."""
        self._graph = torch.cuda.CUDAGraph()
        with _CAPTURING:
            aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(2):
                    run()
                    if restore is not None:
                        restore()
            torch.cuda.current_stream().wait_stream(aside)
            # Other threads may go on with the GPU meanwhile: only what this one does is captured.
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                self._result = run()

    def replay(self) -> Tensor:
        """Launch it again; return where the result lies, which is valid until the next replay."""
        self._graph.replay()
        return self._result


class Pool(Generic[T]):
    """Things that take long to make and are not in use, by what they fit. Several threads may use it.

    Those that were used longest ago go first when what is kept costs more than `limit` together.
    """

    def __init__(self, limit: Callable[[], int], cost: Callable[[T], int] = lambda _: 1) -> None:
        self._limit, self._cost = limit, cost
        self._idle: list[tuple[object, T]] = []  # the one that was used last is the last
        # A thing is given back by `__del__`, which may run inside any of these methods: the lock lets its own thread in
        # again, and the list is replaced and never changed in place.
        self._lock = RLock()

    def borrow(self, key: object, make: Callable[[], T]) -> Borrowed[T]:
        """Take one that fits, or make one; it comes back when the borrower is gone."""
        return Borrowed(self, key, self._take(key) or make())

    def _take(self, key: object) -> T | None:
        with self._lock:
            for entry in reversed(self._idle):
                if entry[0] == key:
                    self._idle = [other for other in self._idle if other is not entry]
                    return entry[1]
        return None

    def _give_back(self, key: object, thing: T) -> None:
        with self._lock:
            self._idle = [*self._idle, (key, thing)]
            while sum(self._cost(each) for _, each in self._idle) > self._limit():
                self._idle = self._idle[1:]

    @property
    def idle(self) -> list[tuple[object, T]]:
        """What is kept, by its key; the one that was used last is the last."""
        return list(self._idle)


class Borrowed(Generic[T]):
    """Something out of a pool, in use by one reader; given back when the reader lets go of it."""

    def __init__(self, pool: Pool[T], key: object, thing: T) -> None:
        self._pool, self._key, self.thing = pool, key, thing

    def __del__(self) -> None:
        self._pool._give_back(self._key, self.thing)
