from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from regard.training import device

Machine = Callable[[int, float], None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Pretend a machine of so many CPUs, so many of which others keep busy."""

    def pretend(n_cpus: int, n_busy: float) -> None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(device.os, "cpu_count", lambda: n_cpus)
        monkeypatch.setattr(device, "_usable_cpus", lambda: n_cpus)
        monkeypatch.setattr(device, "_busy_cpus", lambda: n_busy)
        torch.set_num_threads(n_cpus)

    before = torch.get_num_threads()
    yield pretend
    torch.set_num_threads(before)


def test_the_threads_that_others_leave_free_are_taken_for_a_while(machine: Machine) -> None:
    machine(2, 1.0)
    with device.take_free_threads():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_blocks_of_several_threads_leave_all_cpu_threads_to_what_comes_after(machine: Machine) -> None:
    machine(2, 1.0)
    first, second = device.take_free_threads(), device.take_free_threads()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other, ThreadPoolExecutor(1) as later:
        one.submit(first.__enter__).result()
        other.submit(second.__enter__).result()
        one.submit(first.__exit__, None, None, None).result()
        assert [pool.submit(torch.get_num_threads).result() for pool in (one, other)] == [2, 1]
        other.submit(second.__exit__, None, None, None).result()
        assert [pool.submit(torch.get_num_threads).result() for pool in (other, later)] == [2, 2]


def test_a_block_inside_another_leaves_it_its_threads(machine: Machine) -> None:
    machine(2, 1.0)
    with device.take_free_threads():
        with device.take_free_threads():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_small_updates_take_one_thread(machine: Machine) -> None:
    machine(8, 0.0)
    assert [device.choose_threads(flops) for flops in (0.0, 1e9, 3.2e9, 1e12)] == [(n, None) for n in (1, 1, 2, 8)]
