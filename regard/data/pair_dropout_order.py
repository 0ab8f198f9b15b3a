"""Which pairs make up a batch under BPE dropout, where a pair is of another length each epoch.

Pairs of like lengths go together, and it is the lengths of this epoch that count: laid out by the lengths that words
have when they are cut as always, batches of Multi30k are 51% larger than what is in them; laid out by these, 8%.

An epoch shuffles the pairs and takes them in stretches. The pairs of a stretch are cut, laid out by their longer side,
then by their source, and the line is divided into batches of as many pairs as it would be were its words cut as always:
those numbers are the same in every epoch, and so are, nearly, the lengths at each place. While one stretch is learned
from, the next is cut. Every pair comes once an epoch, every epoch has as many batches, and batch i depends on nothing
but the seed and i.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import permute
from regard.data.pair_dropout import Flat, PairDropout
from regard.data.pair_order import cut_batches, key_of_epoch
from regard.data.pairs import Pairs
from regard.data.rows import Rows

Ids = NDArray[np.int64]

MAX_TOGETHER = 2**15
"""Pairs that are cut at a time: some 10 MB, and a third of a second."""


class Stretch(NamedTuple):
    """Pairs by their numbers, in line, and both sides of each as they were cut."""

    numbers: Ids
    source: Rows
    target: Rows


class DropoutOrder:
    """Which pairs are in batch i, and their ids."""

    def __init__(self, pairs: Pairs, dropout: PairDropout, max_tokens: int, seed: int) -> None:
        self._dropout, self._n_pairs, self._seed = dropout, len(pairs), seed
        self._n_stretches = -(-len(pairs) // MAX_TOGETHER)
        self._bounds = [len(pairs) * k // self._n_stretches for k in range(self._n_stretches + 1)]
        n_source, n_target = pairs.source_lengths, pairs.target_lengths + 1
        line = line_up(n_source, n_target)
        self._cuts = [
            cut_batches(n_source[some], n_target[some], max_tokens)
            for some in (line[spread(len(line), size)] for size in np.diff(self._bounds).tolist())
        ]
        self._first = np.cumsum([0, *(len(cuts) - 1 for cuts in self._cuts)])  # batch of each stretch
        self.per_epoch = int(self._first[-1])
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bpe-dropout")
        self._stretches: dict[int, Future[Stretch]] = {}

    def indices(self, index: int) -> Ids:
        stretch, place = self._find(index)
        return stretch.numbers[place]

    def rows(self, index: int) -> tuple[Flat, Flat]:
        """Sources and targets of batch `index`, as its epoch cuts them."""
        stretch, place = self._find(index)
        chosen = np.arange(len(stretch.numbers))[place]
        return stretch.source.take(chosen), stretch.target.take(chosen)

    def lengths(self, index: int) -> tuple[Ids, Ids]:
        """How many tokens the sources and targets of batch `index` have, <eos> not counted."""
        stretch, place = self._find(index)
        return stretch.source.lengths[place], stretch.target.lengths[place]

    def _find(self, index: int) -> tuple[Stretch, slice]:
        epoch, step = divmod(index, self.per_epoch)
        number = int(np.searchsorted(self._first, step, side="right")) - 1
        cuts, n_before = self._cuts[number], int(self._first[number])
        number += epoch * self._n_stretches
        n_batches, key = len(cuts) - 1, key_of_epoch(self._seed, number, "batches")
        step = int(permute(np.array([step - n_before]), n_batches, seed=key)[0])
        return self._stretch(number), slice(cuts[step], cuts[step + 1])

    def _stretch(self, number: int) -> Stretch:
        """Stretch `number`, counted through all epochs. The one after it is begun."""
        wanted = number, number + 1
        kept = {n: self._stretches.get(n) or self._worker.submit(self._make, n) for n in wanted}
        self._stretches = kept
        return kept[number].result()

    def _make(self, number: int) -> Stretch:
        epoch, k = divmod(number, self._n_stretches)
        places = np.arange(self._bounds[k], self._bounds[k + 1])
        numbers = permute(places, self._n_pairs, seed=key_of_epoch(self._seed, epoch, "pairs"))
        source, target = self._dropout.cut(numbers, epoch)
        line = line_up(source[1], target[1] + 1)
        return Stretch(numbers[line], *(_reorder(side, line) for side in (source, target)))


def line_up(n_source: Ids, n_target: Ids) -> Ids:
    """Pairs from the shortest to the longest: by their longer side, then by their source; equal ones stay as they are.

    >>> line_up(np.array([3, 2, 1]), np.array([1, 2, 2]))
    array([2, 1, 0])
    """
    order: Ids = np.lexsort((n_source, np.maximum(n_source, n_target)))
    return order


def spread(n: int, size: int) -> Ids:
    """`size` of n places, evenly.

    >>> spread(10, 5)
    array([0, 2, 4, 6, 8])
    """
    places: Ids = np.arange(size) * n // size
    return places


def _reorder(side: Flat, line: Ids) -> Rows:
    ids, lengths = side
    ids, lengths = Rows(ids, np.cumsum(np.append(0, lengths))).take(line)
    return Rows(ids.astype(np.int32), np.cumsum(np.append(0, lengths)))
