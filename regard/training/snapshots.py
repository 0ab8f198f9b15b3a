"""Weights kept at chosen steps, to look at how a run learned: `RUN/snapshots/step-00000100.safetensors`.

A snapshot holds the weights that an evaluation at that step would use, and nothing else: it cannot be resumed from.
Each file is written whole or not at all. A run that goes on from a checkpoint drops the snapshots that are newer than
it, and writes them again with the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from regard.errors import RegardError
from regard.files import remove_partial
from regard.training.weights import read_checked_tensors, write_weights

FOLDER = "snapshots"


def list_snapshots(run_folder: Path) -> list[int]:
    """The steps whose weights were kept, in order."""
    names = (file.name for file in (run_folder / FOLDER).glob("step-*.safetensors"))
    return sorted(int(match[1]) for name in names if (match := re.fullmatch(r"step-(\d{8,})\.safetensors", name)))


def snapshot_path(run_folder: Path, step: int) -> Path:
    """The file that keeps the weights of a step."""
    return run_folder / FOLDER / f"step-{step:08d}.safetensors"


def save_snapshot(run_folder: Path, step: int, weights: Mapping[str, Tensor]) -> None:
    """Write the weights of a step, whole or not at all."""
    write_weights(weights, snapshot_path(run_folder, step), has_checksum=True)


def read_snapshot(run_folder: Path, step: int) -> dict[str, Tensor]:
    """The weights that were kept at a step; an error that names the steps there are, or says how to keep some."""
    kept = list_snapshots(run_folder)
    if step not in kept:
        known = f"It kept those of the steps {', '.join(map(str, kept))}." if kept else say_how_to_keep()
        raise RegardError(f"'{run_folder}' did not keep the weights of step {step}. {known}")
    return read_checked_tensors(snapshot_path(run_folder, step))


def say_how_to_keep() -> str:
    """The sentence for a run that kept no snapshots."""
    return (
        "Weights are kept where a run is trained with their steps: regard train ... --set "
        'checkpoint.snapshots="[0, 10, 100, 1000]"'
    )


def drop_newer(run_folder: Path, step: int) -> None:
    """Remove the snapshots of steps after `step`, and what a killed writer left."""
    remove_partial(run_folder / FOLDER)
    for newer in list_snapshots(run_folder):
        if newer > step:
            snapshot_path(run_folder, newer).unlink(missing_ok=True)
