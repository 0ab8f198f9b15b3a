"""Rows of different lengths on disk, texts or their ids: a flat file, mapped into memory, and where each row begins."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.pieces import Piece
from regard.data.workers import count_workers, encode_batches
from regard.text.encoding import Ids
from regard.text.tokenizer import Tokenizer

BATCH_BYTES = 2**20  # of text, handed to an encoder at a time

Kind = type[np.unsignedinteger[Any]]
Lengths = NDArray[np.int64]


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

    def take(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def encode_lines(tokenizer: Tokenizer, texts: Sequence[str], is_source: bool = False) -> tuple[Ids, Lengths]:
    """The ids of texts one after the other, and how many each has: at least one, and none of them <eos>.

    Sources whose tokenizer `ends_sources` have it as their last.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> encode_lines(train_tokenizer(TokenizerConfig(kind="byte"), []), ["ab", "c"])
    (array([ 98,  99, 100], dtype=int32), array([2, 1]))
    """
    pieces = [Piece(text, True) for text in texts]
    return _split_at_ends(tokenizer, texts, tokenizer.encode_documents(pieces), is_source)


def encode_rows(tokenizer: Tokenizer, rows: Rows, is_source: bool = False) -> Iterator[tuple[Ids, Lengths]]:
    """The ids of UTF-8 rows, about BATCH_BYTES of text at a time, on several cores where that helps."""
    order: list[list[str]] = []  # batches handed out and not back yet

    def batches() -> Iterator[list[Piece]]:
        for texts in _text_batches(rows):
            order.append(texts)
            yield [Piece(text, True) for text in texts]

    for ids in encode_batches(batches(), tokenizer, count_workers(tokenizer, int(rows.starts[-1]))):
        yield _split_at_ends(tokenizer, order.pop(0), ids, is_source)


def _text_batches(rows: Rows) -> Iterator[list[str]]:
    """The texts of UTF-8 rows in order, about BATCH_BYTES at a time."""
    begin = 0
    while begin < len(rows):
        end = int(np.searchsorted(rows.starts, rows.starts[begin] + BATCH_BYTES, side="right")) - 1
        end = min(max(end, begin + 1), len(rows))
        data = rows.flat[rows.starts[begin] : rows.starts[end]].tobytes()
        bounds = (rows.starts[begin : end + 1] - rows.starts[begin]).tolist()
        yield [data[a:b].decode() for a, b in pairwise(bounds)]
        begin = end


def _split_at_ends(tokenizer: Tokenizer, texts: Sequence[str], ids: Ids, is_source: bool) -> tuple[Ids, Lengths]:
    """`ids` without the <eos> after each text, unless a source keeps it, and how many each text then has."""
    ends = np.flatnonzero(ids == tokenizer.eos)
    if is_source and tokenizer.ends_sources:
        return ids, np.diff(ends, prepend=-1)
    lengths = np.diff(ends, prepend=-1) - 1
    if len(ends) == len(texts) and lengths.all():
        return ids[ids != tokenizer.eos], lengths
    # Rare: a text that spells "<eos>", which the word tokenizer reads as the end mark, or one of characters that
    # WordPiece removes. What has no token is an unknown word.
    found = [encode_line(tokenizer, text) for text in texts]
    return np.fromiter(chain.from_iterable(found), dtype=np.int32), np.array([len(row) for row in found])


def encode_line(tokenizer: Tokenizer, text: str) -> Ids:
    """The ids of one text that is not empty: at least one, and none of them <eos>, as in `encode_lines`.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> encode_line(train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["a b"]), "b <eos> a")
    array([3, 1, 2], dtype=int32)
    """
    unknown = 1 if tokenizer.unk is None else tokenizer.unk
    ids = tokenizer.encode(text)
    return np.where(ids == tokenizer.eos, unknown, ids) if len(ids) else np.array([unknown], dtype=ids.dtype)


def encode_source(tokenizer: Tokenizer, text: str) -> Ids:
    """The ids of one source that is not empty, with the end mark after it where its tokenizer `ends_sources`."""
    if not tokenizer.ends_sources:
        return encode_line(tokenizer, text)
    return np.append(tokenizer.encode(text), np.int32(tokenizer.eos))
