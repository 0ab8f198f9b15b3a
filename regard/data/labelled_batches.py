"""Batches of labelled texts as a pure function of one integer, which is the whole position in the data.

Texts of like lengths go together, so that little is padding: all are laid out by their length, rounded up to classes,
and cut every `n_batch`. An epoch shuffles the texts within each class and then the batches, so that every text comes
once an epoch, and batch i depends on nothing but the seed and i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import permute
from regard.data.labelled_windows import Windows
from regard.data.pair_order import key_of_epoch, round_up

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
NOWHERE = -1


@dataclass(frozen=True)
class TextBatch:
    """B examples in W windows of T tokens; masks are True where there is one."""

    tokens: Ids  # (B, W, T), padded with 0
    mask: Mask  # (B, W, T)
    keep: Mask  # (B, W, T), one window a token
    segments: Ids  # (B, W, T)
    places: Ids  # (B, N), flat positions w T + t of words or of a passage's tokens; NOWHERE: padding


class LabelledBatches:
    """Which texts are in batch i, for any i >= 0."""

    def __init__(self, lengths: Sequence[int], n_batch: int, seed: int = 0) -> None:
        assert len(lengths), "an empty split was refused before"
        self.n, self.n_batch, self.seed = len(lengths), n_batch, seed
        self.per_epoch = -(-self.n // n_batch)
        self._class = round_up(np.maximum(np.asarray(lengths, dtype=np.int64), 1))
        # The order of one epoch is asked for batch after batch: the last two epochs' are kept.
        self._order = lru_cache(maxsize=2)(self._order_of)

    def indices(self, index: int) -> Ids:
        """The texts of batch `index`; the same whatever was asked before."""
        epoch, step = divmod(index, self.per_epoch)
        step = int(permute(np.array([step]), self.per_epoch, seed=key_of_epoch(self.seed, epoch, "batches"))[0])
        return self._order(epoch)[step * self.n_batch : (step + 1) * self.n_batch]

    def _order_of(self, epoch: int) -> Ids:
        shuffled = permute(np.arange(self.n), self.n, seed=key_of_epoch(self.seed, epoch, "texts"))
        return shuffled[np.argsort(self._class[shuffled], kind="stable")]


def pad_windows(items: Sequence[Windows]) -> TextBatch:
    """Examples of different lengths as one array."""
    B, W = len(items), max(len(item.tokens) for item in items)
    T = max(len(row) for item in items for row in item.tokens)
    tokens, segments = np.zeros((B, W, T), dtype=np.int64), np.zeros((B, W, T), dtype=np.int64)
    mask, keep = np.zeros((B, W, T), dtype=np.bool_), np.zeros((B, W, T), dtype=np.bool_)
    places = np.full((B, max(len(item.places) for item in items)), NOWHERE, dtype=np.int64)
    for b, item in enumerate(items):
        for w, row in enumerate(item.tokens):
            tokens[b, w, : len(row)], segments[b, w, : len(row)] = row, item.segments[w]
            mask[b, w, : len(row)], keep[b, w, : len(row)] = True, item.keeps[w]
        places[b, : len(item.places)] = item.places @ (T, 1)
    return TextBatch(tokens, mask, keep, segments, places)
