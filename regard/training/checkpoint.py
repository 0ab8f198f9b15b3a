"""The state of a run on disk: `RUN/state/step-00000123/`, written whole or not at all.

    state.json             counters, scores, the format and what the run was started with
    model.safetensors      the weights as they are
    average.safetensors    their moving average, where there is one
    optimizer.safetensors  `WEIGHT/SLOT`
    carried.safetensors    the state that recurrent models carry to the next window
    random.safetensors     every random generator
    best.safetensors       the run's model.safetensors at that time (a hard link, so that it costs nothing)

A kill at any moment leaves either the older checkpoint or the newer one. Since the best weights are part of it, a run
goes back to exactly where it was.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.data.checksums import crc32_of, crc32_of_fields
from regard.errors import RegardError
from regard.files import remove_folder, remove_partial, write_atomically, write_folder_atomically
from regard.training.state import TrainState
from regard.training.weights import read_tensors, save_tensors
from regard.untrusted.fields import FieldError
from regard.untrusted.small_files import read_object
from regard.untrusted.values import quote

FORMAT = 1
OWN_CHECKSUM = "own_crc32"  # which earlier versions did not write
MODEL, BEST = "model.safetensors", "best.safetensors"
TENSORS = ("model", "average", "optimizer", "carried", "random")
ENDING = ("README.md", "test.json")
"""What is written when training has ended."""
FILES = (*(f"{name}.safetensors" for name in TENSORS), BEST)


@dataclass(frozen=True)
class Checkpoint:
    """Everything that is needed to go on. `started_with` are settings that may not change on the way."""

    state: TrainState
    tensors: dict[str, dict[str, Tensor]]
    carried_shape: Any
    started_with: dict[str, Any]


def save_checkpoint(run_folder: Path, checkpoint: Checkpoint, keep: int | None) -> Path:
    """Write one checkpoint, and keep the newest `keep` with it (None: all).

    One older than this is always kept: whether the new one is good, only the loss of the next update tells.
    """
    folder = run_folder / "state" / f"step-{checkpoint.state.step:08d}"

    def fill(aside: Path) -> None:
        for name in TENSORS:
            save_tensors(checkpoint.tensors.get(name, {}), aside / f"{name}.safetensors")
        if (run_folder / MODEL).exists():
            link(run_folder / MODEL, aside / BEST)
        written = {
            "format": FORMAT,
            "state": checkpoint.state.to_dict(),
            "carried_shape": checkpoint.carried_shape,
            "started_with": checkpoint.started_with,
            "sizes": {file.name: file.stat().st_size for file in sorted(aside.iterdir())},
            "crc32": {file.name: crc32_of(file) for file in sorted(aside.iterdir())},
        }
        written |= {OWN_CHECKSUM: _checksum_of(written)}
        (aside / "state.json").write_text(json.dumps(written, indent=1) + "\n")

    if not folder.exists():
        write_folder_atomically(folder, fill)
    drop_oldest(run_folder, keep)
    return folder


def drop_oldest(run_folder: Path, keep: int | None) -> None:
    """Remove all checkpoints but the newest `keep`, two at least (None: remove none)."""
    for old in checkpoint_folders(run_folder)[: -max(2, keep)] if keep is not None else []:
        remove_folder(old)


def drop_from(run_folder: Path, step: int) -> Path | None:
    """Remove the checkpoints of `step` and later; returns the newest that is left, or None."""
    for folder in reversed(checkpoint_folders(run_folder)):  # the newest first: killed on the way, no gap is left
        if int(folder.name.removeprefix("step-")) >= step:
            remove_folder(folder)
    return latest_checkpoint(run_folder)


def checkpoint_folders(run_folder: Path) -> list[Path]:
    """All checkpoints of a run, the oldest first."""
    return sorted(f for f in (run_folder / "state").glob("step-*") if re.fullmatch(r"step-\d{8,}", f.name))


def latest_checkpoint(run_folder: Path) -> Path | None:
    """The folder of the newest checkpoint, or None."""
    folders = checkpoint_folders(run_folder)
    return folders[-1] if folders else None


def load_state(folder: Path) -> TrainState:
    """Read the counters of a checkpoint, with every file checked to be whole."""
    return _load_json(folder)[0]


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint, with every file checked to be whole."""
    state, shape, started_with = _load_json(folder)
    written = read_object(folder / "state.json")
    if "crc32" in written:  # which version 0.1.0 did not write
        for name, crc in _read_named(folder, written, "crc32").items():
            if crc32_of(folder / name) != crc:
                raise damage_error(folder, f"{name} has changed since it was written")
    tensors = {name: read_tensors(folder / f"{name}.safetensors") for name in TENSORS}
    if sorted(_list_tensors(shape)) != sorted(tensors["carried"]):
        raise damage_error(folder, "the carried state in state.json is not that of carried.safetensors")
    return Checkpoint(state, tensors, shape, started_with)


def _load_json(folder: Path) -> tuple[TrainState, Any, dict[str, Any]]:
    """Counters, the shape of the carried state, and what the run was started with."""
    try:
        written = read_object(folder / "state.json")
        version = written["format"]
    except (RegardError, ValueError, KeyError) as error:
        raise damage_error(folder, f"state.json cannot be read ({error})") from None
    if version != FORMAT:
        raise RegardError(
            f"{folder} was written in format {quote(version)} and this version of Regard reads format {FORMAT}. "
            "Resume it with the version that wrote it."
        )
    if written.get(OWN_CHECKSUM) not in (None, _checksum_of(written)):
        raise damage_error(folder, "state.json has changed since it was written")
    for name, size in _read_named(folder, written, "sizes").items():
        found = (folder / name).stat().st_size if (folder / name).exists() else None
        if found != size:
            there = "is missing" if found is None else f"has {found}"
            raise damage_error(folder, f"{name} should have {quote(size)} bytes and {there}")
    try:
        state, started_with = TrainState.from_dict(written["state"]), written["started_with"]
        if not isinstance(started_with, dict):
            raise FieldError("'started_with' must be an object")
        if folder.name != f"step-{state.step:08d}":
            raise FieldError(f"it is of step {state.step}")
        return state, written["carried_shape"], started_with
    except (KeyError, FieldError) as error:
        raise damage_error(folder, f"state.json does not hold a state ({error})") from None


def _checksum_of(written: dict[str, Any]) -> str:
    """The CRC-32 of all that state.json says but for itself, however it is laid out."""
    return crc32_of_fields({key: value for key, value in written.items() if key != OWN_CHECKSUM})


def _read_named(folder: Path, written: dict[str, Any], key: str) -> dict[str, Any]:
    """The numbers in state.json, by file: of all files that are read when the run goes on, and of no others."""
    numbers = written.get(key)
    if not isinstance(numbers, dict):
        raise damage_error(folder, f"state.json cannot be read ('{key}' must have a number for every file)")
    if others := sorted(numbers.keys() - set(FILES)):
        raise damage_error(
            folder, f"state.json lists {quote(others[0], 60)} under '{key}', which is no file of a checkpoint"
        )
    read = FILES if os.path.lexists(folder / BEST) else FILES[:-1]
    if missing := [name for name in read if name not in numbers]:
        raise damage_error(folder, f"state.json says nothing of {missing[0]}")
    return numbers


@contextmanager
def explain_other_tensors(folder: Path) -> Iterator[None]:
    """Say in a sentence that the tensors of a checkpoint, which somebody else may have written, do not fit its run."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, RuntimeError) as error:
        raise damage_error(folder, f"its tensors are not those of this run ({type(error).__name__})") from error


def _list_tensors(shape: Any) -> list[str]:
    """The names of the tensors in the shape of a carried state, as JSON has it."""
    if isinstance(shape, list):
        return [name for part in shape for name in _list_tensors(part)]
    return [str(shape.get("tensor"))] if isinstance(shape, dict) else []


def restore_best(run_folder: Path, folder: Path) -> None:
    """Put the run's `model.safetensors` back to what it was when the checkpoint in `folder` was written."""
    write_atomically(run_folder / MODEL, lambda aside: link(folder / BEST, aside))


def is_finished(run_folder: Path) -> bool:
    """Whether a run has ended: then its card or its test score was written."""
    return any((run_folder / name).exists() for name in ENDING)


def forget_ending(run_folder: Path) -> None:
    """Have a run that is trained further count as one that has not ended."""
    for name in ENDING:
        (run_folder / name).unlink(missing_ok=True)


def clean_run_folder(run_folder: Path) -> list[str]:
    """Remove what a killed run left half-written."""
    return remove_partial(run_folder) + remove_partial(run_folder / "state")


def link(source: Path, target: Path) -> None:
    """A second name for a file that is only ever replaced, never changed; a copy where links are not possible."""
    if os.path.lexists(source) and not stat.S_ISREG(source.lstat().st_mode):
        raise RegardError(
            f"'{source}' is no regular file. If it is a link, copy the file that it leads to in its place."
        )
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def damage_error(folder: Path, what: str) -> RegardError:
    return RegardError(
        f"The checkpoint {folder} is damaged: {what}. Delete that folder to resume from the one before it."
    )
