"""What a CPU run frees stays at hand."""

import resource

import pytest
import torch

from regard.training import freed_memory
from regard.training.freed_memory import keep_freed_memory


def count_fresh_pages() -> int:
    """Pages that the system hands out while 40 MB are taken and freed five times, after a first time."""
    for turn in range(6):
        if turn == 1:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [torch.zeros(2**20) for _ in range(10)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(freed_memory._find("mallopt") is None, reason="the C library is not glibc")
def test_memory_is_handed_out_again_without_asking_the_system() -> None:
    with keep_freed_memory():
        assert count_fresh_pages() < 10_000, "of 50,000 pages that were written to"


def test_where_the_c_library_is_another_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "_find", lambda name: None)
    with keep_freed_memory():
        pass
