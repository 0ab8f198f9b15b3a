"""Weights kept at chosen steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_training import run_tiny, same_runs, stop_at, tiny_model

from regard.errors import RegardError
from regard.training.config import CheckpointConfig
from regard.training.snapshots import drop_newer, list_snapshots, read_snapshot, snapshot_path
from regard.training.weights import named_weights, read_tensors, write_weights

KEPT = {"checkpoint": {"snapshots": [0, 3, 7, 12, 40], "every_steps": 5}}


def test_weights_are_kept_before_training_and_after_the_named_steps(tmp_path: Path) -> None:
    begun = {name: value.clone() for name, value in named_weights(tiny_model()).items()}
    run_tiny(tmp_path, **KEPT)
    assert list_snapshots(tmp_path) == [0, 3, 7, 12]  # the run ended before step 40
    first, last = read_snapshot(tmp_path, 0), read_snapshot(tmp_path, 12)
    assert all((first[name] == begun[name]).all() for name in begun)
    newest = read_tensors(tmp_path / "state" / "step-00000012" / "model.safetensors")
    assert all((last[name] == newest[name]).all() for name in newest)


def test_keeping_weights_changes_no_bit_of_a_run(tmp_path: Path) -> None:
    run_tiny(tmp_path / "plain")
    run_tiny(tmp_path / "kept", checkpoint={"snapshots": [0, 1, 2, 3, 4]})
    assert same_runs(tmp_path / "plain", tmp_path / "kept")


def test_a_resumed_run_keeps_the_weights_of_one_never_stopped(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    averaged = {**KEPT, "train": {"average": "ema", "average_decay": 0.9}}
    run_tiny(whole, **averaged)
    run_tiny(parts, on_step=stop_at(4), **averaged)
    snapshot_path(parts, 7).write_bytes(b"of a run that was killed after its last checkpoint")
    (parts / "snapshots" / ".partial-step-00000012-1-0123abcd").write_bytes(b"half")
    run_tiny(parts, resume=True, on_step=stop_at(6), **averaged)
    assert list_snapshots(parts) == [0, 3]
    run_tiny(parts, resume=True, **averaged)
    assert sorted(f.name for f in (parts / "snapshots").iterdir()) == sorted(
        f.name for f in (whole / "snapshots").iterdir()
    )
    for step in list_snapshots(whole):
        assert snapshot_path(whole, step).read_bytes() == snapshot_path(parts, step).read_bytes(), step


def test_a_step_that_was_not_kept_is_an_error_that_names_those_that_were(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"did not keep the weights of step 5\. Weights are kept where .*snapshots="):
        read_snapshot(tmp_path, 5)
    run_tiny(tmp_path, train={"max_steps": 3}, checkpoint={"snapshots": [1, 2]})
    with pytest.raises(RegardError, match=r"step 5\. It kept those of the steps 1, 2\."):
        read_snapshot(tmp_path, 5)
    drop_newer(tmp_path, 1)
    assert list_snapshots(tmp_path) == [1]


def test_too_many_snapshots_are_refused_before_training() -> None:
    with pytest.raises(RegardError, match=r"snapshots names 101 steps, and 100 are the most"):
        CheckpointConfig(snapshots=tuple(range(101)))
    assert len(CheckpointConfig(snapshots=(1,) * 101).snapshots) == 101  # the same step again costs nothing


def test_a_bit_that_flips_in_a_snapshot_is_found(tmp_path: Path) -> None:
    run_tiny(tmp_path, **KEPT)
    path = snapshot_path(tmp_path, 3)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(RegardError, match=r"step-00000003\.safetensors' has changed since it was written"):
        read_snapshot(tmp_path, 3)


def test_a_snapshot_of_an_earlier_version_has_no_checksum_and_is_read(tmp_path: Path) -> None:
    run_tiny(tmp_path, **KEPT)
    weights = read_snapshot(tmp_path, 3)
    write_weights(weights, snapshot_path(tmp_path, 3))
    assert all((read_snapshot(tmp_path, 3)[name] == value).all() for name, value in weights.items())
