"""Arrays out of an HDF5 file that a stranger may have written.

Such a file can name other files to take numbers from, at any path, and can describe terabytes in a kilobyte. Here an
array must lie in the file itself, and what it says of its size is held against the file's own before memory is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.untrusted.small_files import DamagedFileError, open_regular
from regard.untrusted.values import make_printable

MAX_RATIO = 10  # bytes of an array for each of the file; weights pack to a tenth less, if at all
MAX_DIMENSIONS = 8
BROKEN = (OSError, TypeError, ValueError, KeyError, RuntimeError, AttributeError, OverflowError)
"""What h5py raises for a file that is not what it should be."""


class ArrayFile:
    """An open HDF5 file."""

    def __init__(self, path: Path, opened: Any) -> None:
        self.path, self._opened, self._n_bytes = path, opened, path.stat().st_size

    def read(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float32]:
        """The numbers called `name`; None in `shape` stands for any length. Another shape is an error."""
        try:
            found = self._find(name)
            is_alike = len(found.shape) == len(shape)
            if not is_alike or any(a not in (None, b) for a, b in zip(shape, found.shape, strict=True)):
                raise ValueError(f"it has the shape {tuple(found.shape)[:MAX_DIMENSIONS]}")
            if math.prod(found.shape) * found.dtype.itemsize > MAX_RATIO * self._n_bytes:
                raise ValueError("it describes many times more numbers than it holds")
            return np.array(found, dtype=np.float32)
        except BROKEN as error:
            wanted = " x ".join("n" if n is None else f"{n:,}" for n in shape)
            why = make_printable(str(error), 120)
            raise DamagedFileError(
                f"'{self.path}' has no {name} of {wanted} numbers: {why}. It is damaged, or does not hold the weights "
                "that its options describe. Fetch it again."
            ) from None

    def _find(self, name: str) -> Any:
        """A data set of numbers that lies in the file, and not behind a link to another one."""
        import h5py

        place = self._opened
        for part in name.split("/"):
            link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
            if link is None:
                raise ValueError("there is none of this name")
            if not isinstance(link, h5py.HardLink):
                raise ValueError("it is a link, and links may lead to other files")
            place = place[part]
        if not isinstance(place, h5py.Dataset) or place.dtype.kind not in "fiu" or place.shape is None:
            raise ValueError("it is no array of numbers")
        if place.external or place.is_virtual:
            raise ValueError("its numbers lie in another file, and no other is read")
        return place


@contextmanager
def open_hdf5(path: Path) -> Iterator[ArrayFile]:
    """Open a regular HDF5 file for reading."""
    try:
        import h5py  # an extra, and only for these files
    except ImportError:
        raise RegardError("ELMo's weights are HDF5 files. Read them with: pip install 'regard[elmo]'") from None
    try:
        open_regular(path).close()
        file = h5py.File(path, "r")
    except BROKEN as error:
        why = make_printable(str(error), 200)
        raise DamagedFileError(f"'{path}' is no whole HDF5 file: {why}. Fetch it again.") from None
    with file:
        yield ArrayFile(path, file)
