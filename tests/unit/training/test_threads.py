from __future__ import annotations

from collections.abc import Callable, Iterator

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


def test_small_updates_take_one_thread(machine: Machine) -> None:
    machine(8, 0.0)
    assert [device.choose_threads(flops) for flops in (0.0, 1e9, 3.2e9, 1e12)] == [(n, None) for n in (1, 1, 2, 8)]
