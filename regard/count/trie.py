"""The n-grams of a model as a prefix trie in flat arrays.

The children of a node, the n-grams that continue one context, lie side by side, sorted by their last word. Finding
one is a binary search, and numpy does it for a whole text at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.count.counts import NONE, Ids, Index


class Trie:
    """Level 1 holds the V tokens and `<s>` (id V); level n holds keys = prefix (V + 1) + word, sorted."""

    def __init__(self, vocab_size: int, keys: Sequence[Index]) -> None:
        self.base = vocab_size + 1
        self.keys = list(keys)  # keys[0] belongs to level 2

    @property
    def order(self) -> int:
        return len(self.keys) + 1

    @property
    def sizes(self) -> list[int]:
        """How many n-grams each level holds."""
        return [self.base, *map(len, self.keys)]

    def key(self, prefix: Index, word: Ids) -> Index:
        """What the n-gram (prefix, word) is sorted by."""
        keys: Index = prefix * self.base + word
        return keys

    def find(self, n: int, prefix: Index, word: Ids) -> Index:
        """Index of each n-gram (prefix, word) in level n >= 2, NONE where there is none."""
        keys = self.keys[n - 2]
        if not len(keys):
            return np.full(len(prefix), NONE)
        wanted = self.key(prefix, word)
        at = np.searchsorted(keys, wanted)
        at[at == len(keys)] = 0
        at[keys[at] != wanted] = NONE
        return at

    def locate(self, ngram: Sequence[int]) -> int:
        """Index of one n-gram, NONE where there is none."""
        at = np.array([ngram[0]])
        for n, word in enumerate(ngram[1:], start=2):
            at = self.find(n, at, np.array([word]))
        return int(at[0])

    def children(self, n: int, prefix: int) -> tuple[slice, Index]:
        """Where the continuations of n-gram `prefix` lie in level n + 1, and their last words."""
        keys = self.keys[n - 1]
        first, end = np.searchsorted(keys, [prefix * self.base, (prefix + 1) * self.base])
        return slice(first, end), keys[first:end] - prefix * self.base

    def ngrams(self, n: int, rows: slice) -> Index:
        """The token ids of some n-grams of level n, (rows, n)."""
        at = np.arange(*rows.indices(self.sizes[n - 1]))
        columns = []
        for m in range(n, 1, -1):
            at, word = np.divmod(self.keys[m - 2][at], self.base)
            columns.append(word)
        return np.stack([at, *reversed(columns)], axis=1)
