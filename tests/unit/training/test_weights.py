"""Weights in files: their checksum, and reading while they are replaced."""

from __future__ import annotations

import json
import threading
from itertools import count
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.training import weights
from regard.training.weights import matches_checksum, read_checked_tensors, read_tensors, write_weights


def test_weights_that_are_replaced_while_they_are_read_are_the_old_or_the_new_ones(tmp_path: Path) -> None:
    path, is_over = tmp_path / "model.safetensors", threading.Event()
    write_weights({"w": torch.zeros(4)}, path, has_checksum=True)

    def replace() -> None:
        n = 0
        while not is_over.is_set():
            n += 1
            write_weights({"w": torch.full((4,), float(n))}, path, has_checksum=True)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(600):
            w = read_checked_tensors(path)["w"]
            assert w.eq(w[0]).all()
    finally:
        is_over.set()
        writer.join()


def test_weights_that_are_never_left_alone_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, counted = tmp_path / "model.safetensors", count()
    write_weights({"w": torch.zeros(4)}, path)
    monkeypatch.setattr(weights, "_identify", lambda _: (next(counted),))
    with pytest.raises(RegardError, match="is replaced again and again while it is read"):
        read_tensors(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("dtype", "I32"), ("shape", [2, 2])],
)
def test_a_head_that_reads_the_same_bytes_as_other_numbers_is_refused(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "model.safetensors"
    write_weights({"w": torch.ones(4)}, path, has_checksum=True)
    assert matches_checksum(path) is True
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:end])
    head["w"][key] = value
    path.write_bytes(data[:8] + json.dumps(head, separators=(",", ":")).encode().ljust(end - 8) + data[end:])
    assert matches_checksum(path) is False
    with pytest.raises(RegardError, match="has changed since it was written"):
        read_checked_tensors(path)


def test_weights_without_a_checksum_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_weights({"w": torch.ones(4)}, path)
    assert matches_checksum(path) is None
    assert read_checked_tensors(path)["w"].tolist() == [1.0] * 4
