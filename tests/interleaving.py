"""What two threads do at the same time, in an order that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

PATIENCE = 0.5
"""Seconds after which the other thread is taken to wait for a lock that the first one holds."""


class Interrupted:
    """A function that, when it is first called, lets another thread do all of `other` before it returns.

    Where `other` needs what the first thread keeps locked, the first thread goes on and `other` ends after it.
    """

    def __init__(self, call: Callable[..., Any], other: Callable[[], Any]) -> None:
        self._call, self._other, self._future = call, other, Future[Any]()
        self._threads = ThreadPoolExecutor(1)
        self.was_called = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._call(*args, **kwargs)
        if not self.was_called:
            self.was_called = True
            self._future = self._threads.submit(self._other)
            wait([self._future], PATIENCE)
        return result

    def result(self) -> Any:
        """What `other` gave, once it has ended."""
        assert self.was_called, "the function that was to be interrupted was never called"
        self._threads.shutdown()
        return self._future.result()
