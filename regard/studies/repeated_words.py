"""Words that a passage has had before: how far back they stand, and what they cost a model, on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.score.significance import take_sample
from regard.studies.fits import Spread, spread

N_FREQUENT = 500  # a word is rare if so many are more frequent
NEW, SEEN, RARE, ALL = "new words", "words seen before", "rare words seen before", "all words"

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Losses:
    """One model on passages: what every token costs, and how far back the same token stood last (0: nowhere)."""

    name: str
    nats: Floats
    """(W, L)"""
    distances: Ids
    """(W, L)"""
    is_word: NDArray[np.bool_]
    """(W, L): what is counted; marks that are no words, and unknown ones, are not."""
    is_rare: NDArray[np.bool_]
    n_parameters: int | None
    tokens: str
    """What a token is called."""

    def select(self, group: str) -> NDArray[np.bool_]:
        """The places of new words, of those seen before, of rare ones among these, or of all."""
        is_new = self.distances == 0
        chosen = {NEW: is_new, SEEN: ~is_new, RARE: ~is_new & self.is_rare, ALL: np.ones_like(is_new)}[group]
        return np.asarray(chosen & self.is_word)

    def within(self, low: int, high: int) -> NDArray[np.bool_]:
        """The places whose word stood from `low` to `high` places before."""
        return (self.distances >= low) & (self.distances <= high) & self.is_word


def cut_passages(tokens: NDArray[np.integer], n_tokens: int, most: int) -> Ids:
    """At most `most` passages of n tokens, evenly over a text and never over each other.

    >>> cut_passages(np.arange(10), 3, 2)
    array([[0, 1, 2],
           [7, 8, 9]])
    """
    n = min(most, len(tokens) // n_tokens)
    starts = np.linspace(0, len(tokens) - n_tokens, n).astype(np.int64) if n > 1 else np.zeros(n, dtype=np.int64)
    return np.stack([tokens[s : s + n_tokens] for s in starts]).astype(np.int64) if n else np.zeros((0, n_tokens), int)


def find_distances(windows: Ids) -> Ids:
    """How many places before each token the same one stood last in its passage; 0 where it did not.

    >>> find_distances(np.array([[5, 7, 5, 5, 7]]))
    array([[0, 0, 2, 1, 3]])
    """
    found = np.zeros_like(windows)
    for row, window in enumerate(windows.tolist()):
        last: dict[int, int] = {}
        for place, token in enumerate(window):
            found[row, place] = place - last[token] if token in last else 0
            last[token] = place
    return found


def cut_distances(longest: int) -> list[tuple[int, int]]:
    """Bins of distances, each twice as wide as the one before.

    >>> cut_distances(12)
    [(1, 1), (2, 3), (4, 7), (8, 12)]
    """
    bins, low = [], 1
    while low <= longest:
        bins.append((low, min(2 * low - 1, longest)))
        low *= 2
    return bins


def mean_loss(seeds: Sequence[Losses], chosen: Sequence[NDArray[np.bool_]]) -> Spread | None:
    """The mean loss of chosen places, over seeds; of one training, with its interval over passages; None of none."""
    if any(not places.any() for places in chosen):
        return None
    if len(seeds) > 1:
        return spread([float(losses.nats[places].mean()) for losses, places in zip(seeds, chosen, strict=True)])
    return _over_passages(seeds[0].nats, chosen[0])


def mean_gap(ours: Sequence[Losses], theirs: Sequence[Losses], chosen: Sequence[NDArray[np.bool_]]) -> Spread | None:
    """How much less each place costs `ours` than `theirs`, on the same passages."""
    if any(not places.any() for places in chosen):
        return None
    gaps = [b.nats - a.nats for a, b in zip(ours, theirs, strict=True)]
    if len(gaps) > 1:
        return spread([float(gap[places].mean()) for gap, places in zip(gaps, chosen, strict=True)])
    return _over_passages(gaps[0], chosen[0])


def _over_passages(values: Floats, chosen: NDArray[np.bool_]) -> Spread:
    """The mean of chosen places, with the 95% interval that passages give."""
    sums = np.stack([np.where(chosen, values, 0.0).sum(axis=1), chosen.sum(axis=1)], axis=-1)[None]  # (1, W, 2)
    sums = sums[:, sums[0, :, 1] > 0]
    found = take_sample(lambda summed: float(summed[0] / summed[1]), sums, range(sums.shape[1])).estimate
    low, high = found.interval if sums.shape[1] > 1 else (found.value, found.value)
    return Spread(found.value, low, high)
