"""A thread that computes for the page: requests of one kind together, texts that are written step by step.

Models that compute at the same time only wait for each other, so one worker answers nearly all. A second one, to which
the system gives what time the first leaves, is for what takes seconds. What waits is bounded, and a request that finds
no room is told so.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from regard.errors import RegardError

NICENESS = 10
"""How far a worker that yields stands back, in the system's steps."""


JOIN_SECONDS = 10.0
"""How long the end of the thread is waited for."""


class BusyError(Exception):
    """There is no room for another request now; the text says what is full."""


class TooLateError(Exception):
    """A request waited longer than requests may, or the server is going down."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much waits and how much is done at once."""

    n_waiting: int = 512
    """Requests that wait for their turn, those that write texts not counted."""
    n_batch: int = 64
    """Requests of one kind that are computed together; 1: each by itself."""
    n_batch_characters: int = 32_768
    """Characters of a batch, so that many long texts do not need all memory."""
    n_writing: int = 8
    """Texts that are written at the same time, a token each in turn."""
    n_waiting_to_write: int = 64
    max_wait_seconds: float = 30.0


Compute = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(eq=False)
class _Asked:
    """A request that can be computed together with others that have the same key."""

    key: Hashable
    item: Any
    size: int
    compute: Compute
    answer: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class Writing:
    """A text that is being written; `stop` when nobody reads it any more."""

    steps: Callable[[], Generator[Any, None, None]]
    tell: Callable[[Any], None]
    """Called by the worker with each step, with an exception, or with None at the end; it must not wait."""
    since: float = field(default_factory=time.monotonic)
    is_stopped: bool = False
    going: Generator[Any, None, None] | None = None

    def stop(self) -> None:
        """Ask the worker to end it before its next step."""
        self.is_stopped = True


class Worker:
    """The thread, what waits for it, and what it has done so far."""

    def __init__(self, limits: Limits | None = None, *, yields: bool = False) -> None:
        """`yields`: other threads go before this one, where the system knows such an order (Linux)."""
        self.limits, self._yields = limits or Limits(), yields
        self._waiting: deque[_Asked] = deque()
        self._to_write: deque[Writing] = deque()
        self._computing: list[_Asked] = []
        self._writing: list[Writing] = []
        self._changed = threading.Condition()
        self._is_closing = False
        self.n_batches, self.n_answered, self.n_stopped = 0, 0, 0
        self._thread = threading.Thread(target=self._work, name="regard-worker", daemon=True)
        self._thread.start()

    def ask(self, key: Hashable, item: Any, compute: Compute, size: int = 0) -> Future[Any]:
        """The future answer for `item`; `compute` gets it in a list with others of the same key.

        `size` is how many characters it has. BusyError where too many wait.
        """
        asked = _Asked(key, item, size, compute)
        with self._changed:
            self._check_open()
            if len(self._waiting) >= self.limits.n_waiting:
                raise BusyError(f"{self.limits.n_waiting} requests are waiting already, as many as may.")
            self._waiting.append(asked)
            self._changed.notify()
        return asked.answer

    def write(self, steps: Callable[[], Generator[Any, None, None]], tell: Callable[[Any], None]) -> Writing:
        """Begin to write a text as soon as there is room; BusyError where too many wait to be written."""
        writing = Writing(steps, tell)
        with self._changed:
            self._check_open()
            self._to_write = deque(one for one in self._to_write if not one.is_stopped)
            if len(self._to_write) >= self.limits.n_waiting_to_write:
                raise BusyError(f"{self.limits.n_waiting_to_write} texts are waiting to be written, as many as may.")
            self._to_write.append(writing)
            self._changed.notify()
        return writing

    def stop(self) -> None:
        """Take nothing more, and tell what waits or is being computed that it is too late."""
        with self._changed:
            self._is_closing = True
            left = [*self._computing, *self._waiting]
            self._waiting.clear()
            self._changed.notify()
        for asked in left:
            _fail(asked.answer, TooLateError("The server is going down."))

    def close(self) -> None:
        """Stop, and wait for the thread, though not for a computation that takes minutes."""
        self.stop()
        self._thread.join(JOIN_SECONDS)

    def count(self) -> dict[str, int]:
        """What waits and what has been done, for people who watch a server."""
        with self._changed:
            return {
                "waiting": len(self._waiting),
                "waiting_to_write": len(self._to_write),
                "writing": len(self._writing),
                "batches": self.n_batches,
                "answered": self.n_answered,
                "stopped": self.n_stopped,
            }

    def _check_open(self) -> None:
        if self._is_closing:
            raise TooLateError("The server is going down.")

    def _work(self) -> None:
        if self._yields and sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            with self._changed:
                while not (self._waiting or self._to_write or self._writing or self._is_closing):
                    self._changed.wait()
                if self._is_closing:
                    break
                self._computing = batch = self._take_batch()
            began = time.monotonic()
            if batch:
                self._answer(batch)
                with self._changed:
                    self._computing = batch = []  # what was asked and answered may be megabytes
            self._write(time.monotonic() - began)
        for writing in (*self._writing, *self._to_write):
            writing.tell(TooLateError("The server is going down."))

    def _write(self, seconds: float) -> None:
        """Write a token of every text, and more for so many seconds: texts get as much time as what is between them."""
        end = time.monotonic() + seconds
        while True:
            with self._changed:
                while self._to_write and len(self._writing) < self.limits.n_writing:
                    self._writing.append(self._to_write.popleft())
            self._writing = [one for one in self._writing if self._step(one)]
            if not self._writing or self._is_closing or time.monotonic() >= end:
                return

    def _take_batch(self) -> list[_Asked]:
        """The request that waited longest, with all that can be computed together with it."""
        batch: list[_Asked] = []
        left: deque[_Asked] = deque()
        n_characters, now = 0, time.monotonic()
        for asked in self._waiting:
            if asked.answer.cancelled():
                self.n_stopped += 1
            elif now - asked.since > self.limits.max_wait_seconds:
                _fail(asked.answer, TooLateError(f"It waited for {self.limits.max_wait_seconds:g} seconds."))
            elif not batch or (
                asked.key == batch[0].key
                and len(batch) < self.limits.n_batch
                and n_characters + asked.size <= self.limits.n_batch_characters
            ):
                batch.append(asked)
                n_characters += asked.size
            else:
                left.append(asked)
        self._waiting = left
        return batch

    def _answer(self, batch: list[_Asked]) -> None:
        """Compute a batch; where one item cannot be computed, each by itself, so that only that one fails."""
        self.n_batches += 1
        try:
            found = batch[0].compute([asked.item for asked in batch])
        except Exception as error:
            if len(batch) > 1 and isinstance(error, RegardError):
                for asked in batch:
                    self._answer([asked])
                return
            for asked in batch:
                _fail(asked.answer, error)
            return
        self.n_answered += len(batch)
        for asked, answer in zip(batch, found, strict=True):
            try:
                asked.answer.set_result(answer)
            except InvalidStateError:  # whoever asked went away meanwhile
                self.n_stopped += 1

    def _step(self, writing: Writing) -> bool:
        """Write one token more; whether there is more to come."""
        try:
            if writing.is_stopped:
                self.n_stopped += 1
                if writing.going is not None:
                    writing.going.close()
                return False
            if writing.going is None:
                if time.monotonic() - writing.since > self.limits.max_wait_seconds:
                    raise TooLateError(f"It waited for {self.limits.max_wait_seconds:g} seconds.")
                writing.going = writing.steps()
            writing.tell(next(writing.going))
        except StopIteration:
            self.n_answered += 1
            writing.tell(None)
            return False
        except Exception as error:
            writing.tell(error)
            return False
        return True


def _fail(answer: Future[Any], error: Exception) -> None:
    try:
        answer.set_exception(error)
    except InvalidStateError:  # whoever asked went away meanwhile
        return
