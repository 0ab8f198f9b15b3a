"""Rows of different lengths on disk: one flat file that is mapped into memory, and where each row begins."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Kind = type[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class Rows:
    """Row i is flat[starts[i] : starts[i + 1]].

    >>> rows = Rows.of([[3, 1, 4], [], [1, 5]])
    >>> len(rows), rows[2], rows.lengths
    (3, array([1, 5], dtype=uint32), array([3, 0, 2]))
    """

    flat: NDArray[Any]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: list[Any], dtype: Kind = np.uint32) -> Rows:
        """Rows held in memory."""
        parts = [np.asarray(row, dtype=dtype) for row in rows]
        starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return cls(np.concatenate(parts) if parts else np.zeros(0, dtype=dtype), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> NDArray[Any]:
        return self.flat[self.starts[i] : self.starts[i + 1]]

    def taken(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Some rows, one after the other, and their lengths."""
        starts = self.starts[numbers]
        lengths = self.starts[numbers + 1] - starts
        # Place j of the result, in row i: flat[where row i begins + (j - where it begins in the result)]
        shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return self.flat[shift + np.arange(len(shift))].astype(np.int64), lengths

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


class RowsWriter:
    """Writes rows as they come; only the length of each is kept in memory until the end of the `with` block."""

    def __init__(self, folder: Path, name: str, dtype: Kind) -> None:
        self._folder, self._name, self._dtype = folder, name, dtype
        self._file = open(folder / f"{name}.flat", "wb")  # noqa: SIM115 (closed by __exit__)
        self._lengths = array("I")

    def add(self, flat: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        """Some rows, one after the other."""
        assert len(flat) == int(lengths.sum()), "the rows fill what is written"
        self._file.write(flat.astype(self._dtype).tobytes())
        self._lengths.frombytes(lengths.astype(np.uint32).tobytes())

    def __enter__(self) -> RowsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if kind is None:
            starts = np.zeros(len(self._lengths) + 1, dtype=np.int64)
            np.cumsum(np.frombuffer(self._lengths, dtype=np.uint32), out=starts[1:])
            np.save(self._folder / f"{self._name}.npy", starts, allow_pickle=False)


def open_rows(folder: Path, name: str, dtype: Kind) -> Rows:
    """What a RowsWriter wrote; OSError or ValueError where a file is gone or cut short."""
    # Plain arrays on the same memory: a row of np.memmap takes ten times as long to slice.
    starts = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
    path, n = folder / f"{name}.flat", int(starts[-1])
    if path.stat().st_size != n * np.dtype(dtype).itemsize:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, not those of {n} numbers")
    return Rows(np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=(n,))) if n else np.zeros(0, dtype), starts)
