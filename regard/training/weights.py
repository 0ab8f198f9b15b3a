"""A model's weights as one safetensors file, by parameter name. Reading it never runs code."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.errors import RegardError
from regard.files import check_is_text, write_atomically
from regard.untrusted.values import make_printable, quote

CHECKSUM = "crc32"
"""The key of the checksum in the head of a file."""
MAX_TRIES = 100  # to read a file that is replaced again and again
TAKE_COPY = "take it from a copy or train again"


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and the buffers that a model saves, each once, also where two layers share one."""
    shared: set[int] = set()
    weights: dict[str, Tensor] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if id(value) not in shared:
            shared.add(id(value))
            weights[name] = value.detach()
    return weights


def save_tensors(tensors: Mapping[str, Tensor], path: Path, has_checksum: bool = False) -> None:
    """Write tensors where `path` says; not atomic by itself.

    With `has_checksum` their CRC-32 is written into the head of the file: no other file says it.
    """
    written = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    save_file(written, path, {CHECKSUM: checksum_of(written)} if has_checksum else None)


def save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write arrays where `path` says, with their CRC-32 in the head of the file; not atomic by itself."""
    save_tensors({name: torch.from_numpy(array) for name, array in arrays.items()}, path, has_checksum=True)


def checksum_of(tensors: Mapping[str, Tensor]) -> str:
    """The CRC-32 of names, types, shapes and bytes of tensors, in the order of their names."""
    found = 0
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        found = zlib.crc32(f"{name} {value.dtype} {tuple(value.shape)}".encode(errors="surrogateescape"), found)
        flat = value.as_strided((value.numel(),), (1,))  # one value may come from numpy with a stride of 0
        found = zlib.crc32(flat.view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


def write_weights(tensors: Mapping[str, Tensor], path: Path, has_checksum: bool = False) -> None:
    """Write tensors whole or not at all; with `has_checksum` their CRC-32 goes into the head of the file."""
    write_atomically(path, lambda aside: save_tensors(tensors, aside, has_checksum))


def read_tensors(path: Path, way_out: str = TAKE_COPY) -> dict[str, Tensor]:
    """Tensors by name; a file that is missing, cut short or something else is a RegardError that ends in `way_out`."""
    return _read(path, way_out)[0]


def _read(path: Path, way_out: str) -> tuple[dict[str, Tensor], str | None]:
    """Tensors by name and the CRC-32 in the head of one and the same file: a training replaces it by another.

    `safe_open` opens it twice, by its name: first the head is read, then the tensors.
    """
    for _ in range(MAX_TRIES):
        with _explain_errors(path, way_out):
            before = _identify(path)
            with safe_open(path, "pt") as opened:
                # Memory of their own: what the file gives lies in its buffer, at addresses that are not aligned.
                tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
                checksum = (opened.metadata() or {}).get(CHECKSUM)
            if _identify(path) == before:
                return tensors, checksum
    raise RegardError(f"'{path}' is replaced again and again while it is read. Wait until its training has ended.")


def _identify(path: Path) -> tuple[int, ...]:
    """What is not the same of a file that has taken the place of another."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_checked_tensors(path: Path, way_out: str = "Take it from a copy") -> dict[str, Tensor]:
    """Tensors by name; refused where their CRC-32 is not the one in the head of the file, if it has one."""
    tensors, wanted = _read(path, TAKE_COPY)
    if wanted not in (None, checksum_of(tensors)):
        raise RegardError(f"'{path}' has changed since it was written: it was damaged or replaced. {way_out}.")
    return tensors


def matches_checksum(path: Path) -> bool | None:
    """Whether the tensors in a file have the CRC-32 in its head; None: it has none."""
    tensors, wanted = _read(path, TAKE_COPY)
    return None if wanted is None else wanted == checksum_of(tensors)


def read_tensor_shapes(path: Path, way_out: str = TAKE_COPY) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the tensors in a file, from its head alone."""
    with _explain_errors(path, way_out), safe_open(path, "pt") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118


@contextmanager
def _explain_errors(path: Path, way_out: str) -> Iterator[None]:
    check_is_text(path)
    if path.exists() and not os.access(path, os.R_OK):
        raise RegardError(f"{path} is there, but you may not read it. Ask its owner to let you: chmod a+r {path}")
    if path.exists() and not path.is_file():
        raise RegardError(f"{path} is no regular file, and weights are one; {way_out}.")
    try:
        yield
    except FileNotFoundError:
        raise RegardError(f"{path} is missing: the run is incomplete.") from None
    except (SafetensorError, OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
        if _is_git_lfs_pointer(path):
            raise RegardError(
                f"{path} is a pointer of Git LFS and not the weights themselves. Fetch them, in the repository it "
                "came from: git lfs pull"
            ) from None
        size = path.stat().st_size if path.exists() else 0
        raise RegardError(
            f"{path} ({size} bytes) is no whole safetensors file: {make_printable(str(error), 200)}. It was cut "
            f"short or overwritten; {way_out}."
        ) from None


def _is_git_lfs_pointer(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(32).startswith(b"version https://git-lfs")


def check_finite(tensors: Mapping[str, Tensor], where: str, way_out: str) -> None:
    """Refuse weights that are no numbers: whatever they touch becomes NaN, and training cannot mend it."""
    for name, tensor in tensors.items():
        # The sum is finite where all are, or overflows: only then is each looked at.
        if tensor.is_floating_point() and not tensor.sum().isfinite():
            n = int((~tensor.isfinite()).sum())
            if n:
                raise RegardError(
                    f"'{name}' in {where} has {n:,} of {tensor.numel():,} values that are NaN or infinite. {way_out}."
                )


@torch.no_grad()
def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: Path | str = "the weights") -> None:
    """Copy tensors into a model; names and shapes must be exactly its own."""
    own = named_weights(model)
    missing, extra = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing or extra:
        names = ", ".join([f"no '{n}'" for n in missing[:3]] + [f"an unknown {quote(n)}" for n in extra[:3]])
        raise RegardError(f"{where} do not fit this model: {names}. They were saved from a model with another config.")
    for name, value in own.items():
        if value.shape != tensors[name].shape:
            raise RegardError(
                f"{where} do not fit this model: '{name}' is {tuple(tensors[name].shape)} there and "
                f"{tuple(value.shape)} here. They were saved from a model with another config or vocabulary."
            )
        value.copy_(tensors[name])
