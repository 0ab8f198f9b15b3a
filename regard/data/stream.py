"""A stream: the token ids of a text, documents one after the other, each ended by <eos>.

On disk it is numpy files that are mapped into memory, and a note that says what they hold.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.pieces import Piece
from regard.data.split import NAMES
from regard.errors import RegardError
from regard.text.encoding import Ids
from regard.text.units import count_words
from regard.untrusted.small_files import read_object

SHARD_TOKENS = 2**24  # 32 or 64 MB a shard
SAMPLE_CHARS = 20_000
NOTE = "streams.json"


@dataclass(frozen=True)
class Stream:
    """Token ids over one or more memory-mapped shards, and the size of the text they stand for.

    `n_bytes` counts the UTF-8 bytes of the documents; what lies between documents (the line end where a document is
    a line) is not in it. `n_words` counts white-space separated words and line ends, the last line of a document
    included, which is what word perplexity is taken over (KenLM; PTB: 82,430 for the test set).

    >>> stream = Stream.of([3, 1, 4, 1, 5, 0])
    >>> len(stream), stream[1:4]
    (6, array([1, 4, 1]))
    """

    shards: tuple[NDArray[Any], ...]
    n_bytes: int = 0
    n_words: int = 0
    n_documents: int = 0
    sample: str = ""
    _ends: NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lengths = np.array([len(shard) for shard in self.shards], dtype=np.int64)
        object.__setattr__(self, "_ends", np.cumsum(lengths))

    @classmethod
    def of(cls, ids: Sequence[int] | NDArray[Any], *, n_bytes: int = 0, n_words: int = 0, sample: str = "") -> Stream:
        """A stream held in memory."""
        array = np.asarray(ids, dtype=np.uint32)
        return cls((array,), n_bytes, n_words, int((array == 0).sum()), sample)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: slice) -> NDArray[np.int64]:
        """A slice with step 1, as int64; across shards where need be."""
        start, stop, step = index.indices(len(self))
        assert step == 1, "a stream is read forwards"
        parts = []
        for shard, end in zip(self.shards, self._ends.tolist(), strict=True):
            begin = end - len(shard)
            if begin < stop and start < end:
                parts.append(shard[max(start - begin, 0) : stop - begin])
        if len(parts) == 1:
            return parts[0].astype(np.int64)
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)

    @property
    def tokens(self) -> NDArray[Any]:
        """All ids as one array in their small type: a view where there is one shard, else a copy."""
        if len(self.shards) == 1:
            return self.shards[0]
        return np.concatenate(self.shards) if self.shards else np.zeros(0, dtype=np.uint16)

    @property
    def bytes_per_token(self) -> float:
        return self.n_bytes / max(len(self), 1)

    def text_sample(self, n_chars: int) -> str:
        """The first characters of the text itself, as it was before encoding (up to 20,000 are kept)."""
        return self.sample[:n_chars]

    def first_words(self) -> str:
        """Three words with which a line of the text begins; three from its midst where it has no such line."""
        first, *lines = self.text_sample(2000).split("\n")  # the first may have been cut off at its front
        found = next((words for line in lines if len(words := line.split()) >= 4), first.split()[1:])
        return " ".join(found[:3])


@dataclass
class StreamWriter:
    """Writes one split's shards, and counts what is in its text."""

    folder: Path
    name: str
    dtype: type[np.unsignedinteger[Any]]
    n_bytes: int = 0
    n_words: int = 0
    n_documents: int = 0
    sample: str = ""
    lengths: list[int] = field(default_factory=list)  # of the shards written
    _waiting: list[NDArray[Any]] = field(default_factory=list)
    _n_waiting: int = 0

    def count(self, piece: Piece) -> None:
        """Take note of the text that goes in."""
        data = piece.text.encode()
        self.n_bytes += len(data)
        # Words and line ends; the end of a document ends its last line, if that has no line end of its own.
        self.n_words += count_words(data) + data.count(b"\n") + (piece.ends and not data.endswith(b"\n"))
        self.n_documents += piece.ends
        if len(self.sample) < SAMPLE_CHARS:
            self.sample += piece.text[: SAMPLE_CHARS - len(self.sample)] + ("\n" if piece.ends else "")

    def add(self, ids: Ids) -> None:
        small = ids.astype(self.dtype)
        while self._n_waiting + len(small) >= SHARD_TOKENS:
            room = SHARD_TOKENS - self._n_waiting
            self._waiting.append(small[:room])
            small = small[room:]
            self._write()
        self._waiting.append(small)
        self._n_waiting += len(small)

    def close(self) -> dict[str, Any]:
        """Write what is left; returns the note that `open_streams` reads."""
        if self._n_waiting:
            self._write()
        names = ("n_bytes", "n_words", "n_documents", "sample", "lengths")
        return {name: getattr(self, name) for name in names}

    def _write(self) -> None:
        shard = np.concatenate(self._waiting)
        np.save(self.folder / _shard_name(self.name, len(self.lengths)), shard, allow_pickle=False)
        self.lengths.append(len(shard))
        self._waiting, self._n_waiting = [], 0


def write_note(folder: Path, writers: list[StreamWriter], n_stretches: int = 0) -> None:
    """Write what is left, and what the streams hold; `n_stretches` is in how many parts text was set apart."""
    notes: dict[str, Any] = {writer.name: writer.close() for writer in writers}
    notes["n_stretches"] = n_stretches
    (folder / NOTE).write_text(json.dumps(notes, ensure_ascii=False), encoding="utf-8")


def open_streams(folder: Path) -> dict[str, Stream] | None:
    """The streams of a folder, or None where it is not there or not whole (a file deleted or cut short)."""
    try:
        notes = read_object(folder / NOTE)
        return {name: _open_stream(folder, name, notes[name]) for name in NAMES}
    except (OSError, ValueError, KeyError, TypeError, RegardError):
        return None


def read_n_stretches(folder: Path) -> int:
    """In how many stretches each the validation and test text of a folder were set apart; 0: by documents."""
    found = read_object(folder / NOTE).get("n_stretches", 0)
    return found if isinstance(found, int) else 0


def _open_stream(folder: Path, name: str, note: dict[str, Any]) -> Stream:
    shards = []
    for i, length in enumerate(note["lengths"]):
        shard = np.load(folder / _shard_name(name, i), mmap_mode="r", allow_pickle=False)
        if shard.shape != (length,):
            raise ValueError(f"shard {i} of {name} has {shard.shape} tokens, not {length}")
        shards.append(shard)
    return Stream(tuple(shards), note["n_bytes"], note["n_words"], note["n_documents"], note["sample"])


def _shard_name(name: str, i: int) -> str:
    return f"{name}-{i:05d}.npy"
