"""Memory that a CPU run frees and soon asks for again."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # of glibc's mallopt
GIVEN_BACK = 2**22  # bytes of a block that goes back at once in a process that runs for long
LARGEST = 2**25  # bytes of a block from the heap: the most that every glibc takes
N_COMPILED = 32  # shapes for which oneDNN keeps its code
KEPT = 2**30  # free bytes at the heap's end that stay


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep what is freed inside this block for what is asked for next, where the C library is glibc.

    By itself it gives large blocks back to the system at once, which hands them out again filled with zeros, page by
    page: 5 to 12% of an update of a small Transformer (2026-11-16). What was kept goes back at the block's end.
    """
    mallopt, trim = find_function("mallopt"), find_function("malloc_trim")
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


def bound_memory() -> None:
    """Keep the memory of a process that runs for long from growing with every new shape of a batch. Call it first.

    By itself glibc raises the size from which it gives blocks back with every large block, and batches of ever new
    shapes leave holes in its heap. oneDNN, by which torch computes on a CPU, keeps compiled code for the last 1,024
    shapes that it met, some 200 kB each, and torch's layer above it does so again; both read how many they may keep
    when they compute for the first time.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(N_COMPILED))
    mallopt = find_function("mallopt")
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, GIVEN_BACK)
        mallopt(ARENA_MAX, 2)


def find_function(name: str) -> Callable[..., int] | None:
    """A function of the C library, if it is there."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
