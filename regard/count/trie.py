"""The n-grams of a model as a prefix trie in flat arrays.

The children of a node, the n-grams that continue one context, lie side by side, sorted by their last word. Finding
one is a binary search, and numpy does it for a whole text at once. A model that is asked often gets hash tables
(`regard/text/key_table.py`): on the Penn Treebank they are four times as fast, and making them takes as long as
searching for half as many n-grams as are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.count.counts import NONE, Ids, Index
from regard.text.key_table import ABSENT, MAX_ROWS, KeyTable

# Hash tables are made when so many n-grams a stored one were searched for: what was spent on searching by then is about
# what making them costs, so that in all a text never takes twice the time of the better choice.
SEARCHES_BEFORE_TABLES = 0.5
assert ABSENT == NONE


class Trie:
    """Level 1 holds the V tokens and `<s>` (id V); level n holds keys = prefix (V + 1) + word, sorted."""

    def __init__(self, vocab_size: int, keys: Sequence[Index]) -> None:
        self.base = vocab_size + 1
        self.keys = list(keys)  # keys[0] belongs to level 2
        self._n_searched = 0
        self._tables: list[KeyTable] | None = None

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

    @property
    def searches(self) -> bool:
        """Whether `find_many` still searches, for lack of hash tables."""
        return self._tables is None

    def find_many(self, n: int, prefix: Index, word: Ids) -> Index:
        """What `find` gives, for the n-grams of a text: by a hash table, or in the order of the trie until it pays.

        Neighbours in the trie are found with fewer cache misses: a search in the order of the text takes twice as long.
        """
        if self._tables is not None:
            return self._tables[n - 2].find([self.key(prefix, word).view(np.uint64)]).astype(np.int64)
        self._count_searches(len(prefix))
        order = np.argsort(self.key(prefix, word))
        at = np.empty(len(prefix), np.int64)
        at[order] = self.find(n, prefix[order], word[order])
        return at

    def _count_searches(self, n: int) -> None:
        self._n_searched += n
        n_stored, largest = sum(self.sizes), max(self.sizes)
        if self._n_searched > SEARCHES_BEFORE_TABLES * n_stored and largest <= MAX_ROWS:
            self._tables = [KeyTable([keys.view(np.uint64)]) for keys in self.keys]

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
