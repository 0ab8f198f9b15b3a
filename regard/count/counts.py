"""Every distinct n-gram of a text, for n = 1 to N, and how often each was seen.

A stream is cut at `<eos>` into sentences; `<s>` stands before each, `<eos>` is its last token (ARPA's `</s>`). `<s>`
is never predicted, so it is no token of the vocabulary: inside this room it has the id V, and n-grams that begin with
it are the last ones of their level.

An n-gram is the pair (its first n-1 words, its last word), and so a level of the trie is one sorted array:

    key = prefix (V + 1) + word,   prefix = index of w_1 .. w_{n-1} in level n-1

With I_n[i] the index of the n-gram that ends at position i (NONE where the sentence is too young for it),

    I_1[i] = x[i],   I_n[i] = rank of (I_{n-1}[i-1], x[i]) among all such pairs

so that each order costs one sort of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]  # token ids of any width: what a stream holds
Index = npt.NDArray[np.int64]  # positions in a level of the trie, or keys into one
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

EOS = 0  # the token that ends a sentence
NONE = -1  # the index of an n-gram that is not there

Progress = Callable[[str, int, int | None], None]  # (what is being done, orders done, orders in all)


@dataclass(frozen=True)
class Level:
    """The U distinct n-grams of one order, sorted by key."""

    keys: Index  # (U,)
    counts: Index  # (U,) times seen
    suffixes: Index  # (U,) index of w_2 .. w_n in the level below
    n_inside: int  # the first so many do not begin with <s>; the rest do


def count_ngrams(ids: Ids, order: int, vocab_size: int, progress: Progress | None = None) -> list[Level]:
    """The levels 1 .. order of the stream `ids`.

    >>> levels = count_ngrams(np.array([1, 2, 1, 2, 0]), order=2, vocab_size=3)
    >>> [(int(key) // 4, int(key) % 4, int(count)) for key, count in zip(levels[1].keys, levels[1].counts)]
    [(1, 2, 2), (2, 0, 1), (2, 1, 1), (3, 1, 1)]
    """
    base = vocab_size + 1
    starts = sentence_starts(ids)
    x = ids.astype(np.int64)
    found = x  # I_1
    unigrams = Level(np.arange(base), np.bincount(x, minlength=base), np.zeros(base, np.int64), vocab_size)
    levels = [unigrams]
    for n in range(2, order + 1):
        if progress is not None:
            progress("counting n-grams", n - 1, order)
        shorter, prefix = found, find_prefixes(found, starts, n, vocab_size)
        rows = np.flatnonzero(prefix != NONE)
        keys, index, counts = np.unique(prefix[rows] * base + x[rows], return_inverse=True, return_counts=True)
        suffixes = np.empty_like(keys)
        suffixes[index] = shorter[rows]
        n_inside = int(np.searchsorted(keys, levels[-1].n_inside * base))
        levels.append(Level(keys, counts, suffixes, n_inside))
        found = np.full_like(x, NONE)
        found[rows] = index
    if progress is not None:
        progress("counting n-grams", order, order)
    return levels


def sentence_starts(ids: Ids) -> Bools:
    """True where a sentence begins: at the first token of the stream and after each `<eos>`."""
    starts = np.empty(len(ids), np.bool_)
    starts[:1] = True
    np.equal(ids[:-1], EOS, out=starts[1:])
    return starts


def find_prefixes(found: Index, starts: Bools, n: int, bos: int) -> Index:
    """I_{n-1}[i-1], the prefix of the n-gram that ends at i; at the start of a sentence it can only be `<s>`."""
    prefix = np.empty_like(found)
    prefix[:1] = NONE
    prefix[1:] = found[:-1]
    prefix[starts] = bos if n == 2 else NONE
    return prefix
