"""Character n-grams of words, by their hash, as in fastText (Bojanowski et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


def list_ngrams(word: str, min_n: int, max_n: int) -> list[str]:
    """The n-grams of a word between the marks < and >.

    >>> list_ngrams("cat", 3, 4)
    ['<ca', '<cat', 'cat', 'cat>', 'at>']
    """
    marked = f"<{word}>"
    return [
        marked[begin : begin + n]
        for begin in range(len(marked))
        for n in range(min_n, max_n + 1)
        # A mark alone says nothing of the word.
        if begin + n <= len(marked) and not (n == 1 and begin in (0, len(marked) - 1))
    ]


def hash_ngram(ngram: str) -> int:
    """FNV-1a of the UTF-8 bytes, 32 bits, with fastText's sign: bytes from 128 on count as negative numbers."""
    found = 2166136261
    for byte in ngram.encode():
        found = ((found ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return found


def bucket_ids(word: str, min_n: int, max_n: int, n_buckets: int) -> list[int]:
    """The rows of a word's n-grams."""
    return [hash_ngram(ngram) % n_buckets for ngram in list_ngrams(word, min_n, max_n)]


@dataclass(frozen=True)
class SubwordIndex:
    """The rows of every word's n-grams: those of word i are rows[starts[i] : starts[i] + lengths[i]]."""

    rows: Int[Tensor, R]
    starts: Int[Tensor, V]
    lengths: Int[Tensor, V]

    @classmethod
    def of(cls, words: Sequence[str], min_n: int, max_n: int, n_buckets: int) -> SubwordIndex:
        """`words` by id; those at ids 0 and 1, <eos> and <unk>, have no n-grams."""
        each = [[], [], *(bucket_ids(word, min_n, max_n, n_buckets) for word in words[2:])]
        lengths = torch.tensor([len(rows) for rows in each])
        rows = torch.from_numpy(np.array([row for rows in each for row in rows], dtype=np.int64))
        return cls(rows, lengths.cumsum(0) - lengths, lengths)

    def to(self, device: torch.device) -> SubwordIndex:
        moved = {name: getattr(self, name).to(device) for name in ("rows", "starts", "lengths")}
        return replace(self, **moved)

    def _expand(self, ids: Int[Tensor, T]) -> tuple[Int[Tensor, E], Int[Tensor, E]]:
        """The n-gram rows of all these words, and for each the place of its word in `ids`."""
        lengths = self.lengths[ids]
        place = torch.repeat_interleave(torch.arange(len(ids), device=ids.device), lengths)
        first = lengths.cumsum(0) - lengths
        within = torch.arange(len(place), device=ids.device) - first[place]
        return self.rows[self.starts[ids][place] + within], place

    def compose(
        self, own: Float[Tensor, "T D"], subwords: Float[Tensor, "K D"] | None, ids: Int[Tensor, T]
    ) -> Float[Tensor, "T D"]:
        """The mean of each word's own row and those of its n-grams."""
        assert subwords is not None, "an index of n-grams comes with their rows"
        rows, place = self._expand(ids)
        total = own.index_add(0, place, subwords.index_select(0, rows))
        return total / (1 + self.lengths[ids])[:, None]

    def add(self, subwords: Float[Tensor, "K D"] | None, ids: Int[Tensor, T], step: Tensor, lr: float) -> None:
        """Move the n-gram rows of each word by its step."""
        assert subwords is not None, "an index of n-grams comes with their rows"
        rows, place = self._expand(ids)
        subwords.index_add_(0, rows, step.index_select(0, place), alpha=lr)
