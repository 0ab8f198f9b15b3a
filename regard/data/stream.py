"""A stream: the token ids of a text on disk, documents one after the other, each ended by <eos>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
