"""Memory that a CPU run frees and soon asks for again."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
LARGEST = 2**25  # bytes of a block from the heap: the most that every glibc takes
KEPT = 2**30  # free bytes at the heap's end that stay


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep what is freed inside this block for what is asked for next, where the C library is glibc.

    By itself it gives large blocks back to the system at once, which hands them out again filled with zeros, page by
    page: 5 to 12% of an update of a small Transformer (2026-11-16). What was kept goes back at the block's end.
    """
    mallopt, trim = _find("mallopt"), _find("malloc_trim")
    if mallopt is None or trim is None:
        yield
        return
    mallopt(MMAP_THRESHOLD, LARGEST)
    mallopt(TRIM_THRESHOLD, KEPT)
    try:
        yield
    finally:
        mallopt(TRIM_THRESHOLD, 2 * LARGEST)  # what glibc takes by itself after a block of this size
        trim(0)


def _find(name: str) -> Callable[..., int] | None:
    """A function of the C library, if it is there."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
