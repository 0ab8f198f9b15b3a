"""SIGTERM, which would end a process at once, ends it as Ctrl-C does: what is half done is put away first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Inside this block SIGTERM raises KeyboardInterrupt; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
