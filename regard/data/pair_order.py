"""Which pairs make up a batch: those of like lengths, in a line that an epoch shuffles and that is cut into batches.

Lengths are rounded up to classes,

    1, 2, .., 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, ..      (four to an octave: at most a quarter too long)

all pairs are laid out by the class of their target, then of their source, and the line is cut where the longest of the
classes fill a batch. An epoch shuffles the pairs within each class, which leaves the cuts where they are, and then the
batches. So every pair comes once an epoch, every epoch has as many batches, and batch i depends on nothing but the seed
and i.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import permute
from regard.data.pairs import Pairs

Ids = NDArray[np.int64]


class PlainOrder:
    """Which pairs are in batch i, where a pair is as long in one epoch as in the next."""

    def __init__(self, pairs: Pairs, max_tokens: int, seed: int) -> None:
        self._pairs, self._seed = pairs, seed
        self._class, n_source, n_target = classify_lengths(pairs)
        self._cuts = cut_batches(n_source, n_target, max_tokens)
        self.per_epoch = len(self._cuts) - 1
        # The order of one epoch is asked for batch after batch: the last two epochs' are kept.
        self._order = lru_cache(maxsize=2)(self._order_of)

    def indices(self, index: int) -> Ids:
        epoch, step = divmod(index, self.per_epoch)
        step = int(permute(np.array([step]), self.per_epoch, seed=key_of_epoch(self._seed, epoch, "batches"))[0])
        return self._order(epoch)[self._cuts[step] : self._cuts[step + 1]]

    def lengths(self, index: int) -> tuple[Ids, Ids]:
        """How many tokens the sources and targets of batch `index` have, <eos> not counted."""
        chosen = self.indices(index)
        return self._pairs.source_lengths[chosen], self._pairs.target_lengths[chosen]

    def _order_of(self, epoch: int) -> Ids:
        n = len(self._pairs)
        shuffled = permute(np.arange(n), n, seed=key_of_epoch(self._seed, epoch, "pairs"))
        return shuffled[np.argsort(self._class[shuffled], kind="stable")]


def round_up(lengths: Ids) -> Ids:
    """Lengths rounded up to their classes.

    >>> round_up(np.array([1, 8, 9, 15, 16, 17, 33]))
    array([ 1,  8, 10, 16, 16, 20, 40])
    """
    octave = np.frexp(np.maximum(lengths - 1, 1))[1] - 1  # floor(log2(length - 1))
    grain = 1 << np.maximum(octave - 2, 0)
    rounded: Ids = -(-lengths // grain) * grain
    return rounded


def classify_lengths(pairs: Pairs) -> tuple[Ids, Ids, Ids]:
    """The class of each pair, numbered as they are laid out, and how long a source and a target at each place may be.

    Pairs stand in line by their class; a place may be taken by any of its class, so it has the length of the longest.
    Targets are counted with their <eos>.
    """
    n_source, n_target = pairs.source_lengths, pairs.target_lengths + 1
    turned, rank = fold_order(round_up(n_source), round_up(n_target))
    span = 2 * int(np.abs(turned).max()) + 1
    _, number, sizes = np.unique(rank * span + turned, return_inverse=True, return_counts=True)
    longest = np.zeros((2, len(sizes)), dtype=np.int64)
    np.maximum.at(longest[0], number, n_source)
    np.maximum.at(longest[1], number, n_target)
    return number, np.repeat(longest[0], sizes), np.repeat(longest[1], sizes)


def fold_order(n_source: Ids, target_class: Ids) -> tuple[Ids, Ids]:
    """What to sort sources by within a target class, and what to sort target classes by.

    Every other target class has its sources from long to short: where one class ends and the next begins, and a batch
    may hold some of both, sources are of like lengths.
    """
    _, rank = np.unique(target_class, return_inverse=True)
    return np.where(rank % 2 == 0, n_source, -n_source), rank


def cut_batches(n_source: Ids, n_target: Ids, max_tokens: int) -> list[int]:
    """Where a line of pairs is cut, so that rows x (longest source + longest target) is at most `max_tokens`.

    >>> cut_batches(np.array([2, 2, 3, 9]), np.array([2, 2, 2, 9]), max_tokens=15)
    [0, 3, 4]
    """
    found, S, T = [0], 0, 0
    for i, (s, t) in enumerate(zip(n_source.tolist(), n_target.tolist(), strict=True)):
        S, T = max(S, s), max(T, t)
        if (i + 1 - found[-1]) * (S + T) > max_tokens and i > found[-1]:
            found.append(i)
            S, T = s, t
    return [*found, len(n_source)]


def key_of_epoch(seed: int, epoch: int, what: str) -> int:
    """A seed for one use in one epoch."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {epoch} {what}".encode(), digest_size=7).digest(), "little")
