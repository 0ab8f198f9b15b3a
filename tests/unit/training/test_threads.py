from __future__ import annotations

import pytest
import torch

from regard.training import device


def test_the_threads_that_others_leave_free_are_taken_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(device.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(device, "_usable_cpus", lambda: 2)
    monkeypatch.setattr(device, "_busy_cpus", lambda: 1.0)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with device.take_free_threads():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_small_updates_take_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(device.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(device, "_usable_cpus", lambda: 8)
    monkeypatch.setattr(device, "_busy_cpus", lambda: 0.0)
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    try:
        assert [device.choose_threads(flops) for flops in (0.0, 1e9, 3.2e9, 1e12)] == [(n, None) for n in (1, 1, 2, 8)]
    finally:
        torch.set_num_threads(before)
