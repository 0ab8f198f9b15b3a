"""How many CPU threads a run takes, and that a resumed run takes as many."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_training import run_tiny, same_runs, stop_at

from regard.training import device
from regard.training.checkpoint import latest_checkpoint, load_state
from regard.training.state import TrainState


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Eight CPUs, all usable and idle, of which torch would take eight."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(device, "_usable_cpus", lambda: 8)
    monkeypatch.setattr(device, "_busy_cpus", lambda: 0.3)
    return monkeypatch


def test_an_idle_machine_is_left_to_torch(machine: pytest.MonkeyPatch) -> None:
    assert device.choose_threads() == (8, None)


@pytest.mark.parametrize(("busy", "expected"), [(3.2, 5), (7.6, 1), (40.0, 1)])
def test_a_busy_machine_gets_as_many_threads_as_cpus_are_idle(
    machine: pytest.MonkeyPatch, busy: float, expected: int
) -> None:
    machine.setattr(device, "_busy_cpus", lambda: busy)
    chosen, note = device.choose_threads()
    assert chosen == expected
    assert note is not None
    assert note.startswith(f"Taking {expected} of 8 CPU threads: other programs keep this machine busy.")


def test_a_quota_limits_the_threads(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(device, "_usable_cpus", lambda: 2)
    chosen, note = device.choose_threads()
    assert (chosen, note) == (2, "Taking 2 of 8 CPU threads: this process may use no more CPUs. Set runtime.n_threads "
                                 "to choose another number.")  # fmt: skip


def test_a_number_that_the_user_has_set_is_taken(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("OMP_NUM_THREADS", "8")
    machine.setattr(device, "_busy_cpus", lambda: 40.0)
    assert device.choose_threads() == (8, None)


def test_a_program_that_has_just_ended_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/loadavg": "6.00 3.00 1.00 5/345 678"}
    monkeypatch.setattr("os.getloadavg", lambda: (6.0, 3.0, 1.0))
    monkeypatch.setattr(Path, "iterdir", lambda self: iter([self / "1", self / "2", self / "3"]))
    monkeypatch.setattr(Path, "read_text", lambda self: files.get(str(self), f"{self.parent.name} (a b) R 1 1"))
    assert device._busy_cpus() == 2  # five threads run now, and three of them are this program's


def test_a_resumed_run_takes_the_threads_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(state: TrainState) -> bool:
        seen.append(torch.get_num_threads())
        return state.step == 4

    before = torch.get_num_threads()
    null = {"runtime": {"n_threads": None}}
    monkeypatch.setattr("regard.training.loop.choose_threads", lambda: (2, None))
    run_tiny(tmp_path / "parts", on_step=look, **null)
    monkeypatch.setattr("regard.training.loop.choose_threads", lambda: (3, None))
    run_tiny(tmp_path / "parts", on_step=look, resume=True, **null)
    assert set(seen) == {2}
    assert torch.get_num_threads() == before
    latest = latest_checkpoint(tmp_path / "parts")
    assert latest is not None
    assert load_state(latest).n_threads == 2
    monkeypatch.setattr("regard.training.loop.choose_threads", lambda: (2, None))
    run_tiny(tmp_path / "whole", **null)
    assert same_runs(tmp_path / "parts", tmp_path / "whole")


def test_a_number_in_the_config_goes_before_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.loop.choose_threads", lambda: (2, None))
    run_tiny(tmp_path, on_step=stop_at(4), runtime={"n_threads": None})
    seen: list[int] = []
    run_tiny(tmp_path, on_step=lambda state: bool(seen.append(torch.get_num_threads())), resume=True)
    assert set(seen) == {1}
