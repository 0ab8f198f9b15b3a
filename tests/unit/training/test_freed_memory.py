"""What a CPU run frees stays at hand."""

import resource
import subprocess
import sys

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


@pytest.mark.skipif(freed_memory.find_function("mallopt") is None, reason="the C library is not glibc")
def test_memory_is_handed_out_again_without_asking_the_system() -> None:
    with keep_freed_memory():
        assert count_fresh_pages() < 10_000, "of 50,000 pages that were written to"


def test_where_the_c_library_is_another_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "find_function", lambda name: None)
    with keep_freed_memory():
        pass


SHAPES = """
import ctypes
from regard.training.freed_memory import bound_memory
bound_memory()
import torch
class Held(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena a b c mapped d e used free f".split()]
count = ctypes.CDLL(None).mallinfo2
count.restype = Held
layer, head, held = torch.nn.LSTM(16, 16).eval(), torch.nn.Linear(16, 16), {}
with torch.inference_mode():
    for n in range(1, 151):
        head(layer(torch.zeros(n, 2, 16))[0].flatten(0, 1))
        held[n] = count().used
print(held[150] - held[50])
"""


@pytest.mark.skipif(freed_memory.find_function("mallinfo2") is None, reason="the C library is no glibc from 2.33 on")
def test_ever_new_shapes_need_no_more_memory() -> None:
    done = subprocess.run([sys.executable, "-c", SHAPES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4_000_000, "without a bound, a hundred shapes more need 20 MB"
