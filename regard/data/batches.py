"""Batches as a pure function of one integer, which is the whole position in the data.

A stream x_0 .. x_{L-1} is read as a ring: the token before x_0 is x_{L-1}, which is <eos>, the start symbol. So every
token of the stream is somebody's target, and an epoch may start anywhere: epoch e is the ring turned by a seeded
offset, and what does not fill a last batch is a different piece of text each time.

Windows may vary in length (Merity et al. 2018), so that it is not always the same words that stand at a window's edge,
where the gradient stops:

    n = n_context with probability 0.95, else n_context / 2;      length = max(5, normal(n, 5))

The lengths of one epoch are drawn once, until a lane is full; every epoch takes these same lengths in an order of its
own. So all epochs have as many batches, and each token is somebody's target once in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from regard.data.stream import Stream
from regard.errors import RegardError, nearest

ORDERS = ("stream", "shuffle")
P_FULL, SPREAD, SHORTEST = 0.95, 5.0, 5

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Row b, column t: predict targets[b, t] from inputs[b, :t + 1]; mask is True where the target is real."""

    inputs: Ids  # (B, T)
    targets: Ids  # (B, T)
    mask: NDArray[np.bool_]  # (B, T)
    is_fresh: bool  # the rows start new texts: carried state is reset before this batch


class Batches:
    """Batch i of a stream, for any i >= 0, in no particular order of asking.

    order "stream": B lanes a stream apart, T tokens a step, so that row b of batch i + 1 continues row b of batch i;
    `is_fresh` marks the first batch of an epoch.
    order "shuffle": windows of T tokens, each epoch in another order; every batch is fresh.
    With `varies_context`, which needs the order "stream", T differs from batch to batch and is n_context on average.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        n_batch: int,
        n_context: int,
        seed: int = 0,
        order: str = "stream",
        varies_context: bool = False,
    ) -> None:
        if order not in ORDERS:
            raise RegardError(f"order must be one of {', '.join(ORDERS)}, not {order!r}.{nearest(order, ORDERS)}")
        if varies_context and order != "stream":
            raise RegardError(
                f"varies_context needs order stream, not {order}: shuffled windows are all of one length."
            )
        if n_batch < 1 or n_context < 1:
            raise RegardError(f"n_batch and n_context must be at least 1, not {n_batch} and {n_context}.")
        if len(stream) < n_context + 1:
            raise RegardError(
                f"The text has {len(stream)} tokens, and one window needs n_context + 1 = {n_context + 1}. "
                f"Give more text or make n_context at most {max(len(stream) - 1, 1)}."
            )
        self.stream, self.n_batch, self.n_context, self.seed, self.order = stream, n_batch, n_context, seed, order
        self.n_windows = len(stream) // n_context
        self.per_epoch = max(
            1, (len(stream) // n_batch // n_context) if order == "stream" else self.n_windows // n_batch
        )
        self._lengths: Ids | None = None
        if varies_context:
            self._lengths = vary_lengths(max(len(stream) // n_batch, n_context), n_context, seed)
            self.per_epoch = len(self._lengths)
        # The places of one epoch's windows are asked for batch after batch: the last two epochs' are kept.
        self._places = lru_cache(maxsize=2)(self._places_of)

    def rate_factor(self, index: int) -> float:
        """What the learning rate of batch `index` is multiplied by: its length over n_context (Merity et al. 2018).

        A short window has fewer tokens to average over, and would else move the weights as far as a long one.
        """
        epoch, step = divmod(index, self.per_epoch)
        return self._place(epoch, step)[1] / self.n_context

    def at(self, index: int) -> Batch:
        """Batch `index`; the same arguments give the same arrays, whatever was asked before."""
        epoch, step = divmod(index, self.per_epoch)
        _, T = self._place(epoch, step)
        text = np.stack([self._window(start, T) for start in self.starts(index).tolist()])  # (B, T + 1)
        mask = np.ones((self.n_batch, T), dtype=np.bool_)
        is_fresh = step == 0 or self.order == "shuffle"
        return Batch(inputs=text[:, :-1], targets=text[:, 1:], mask=mask, is_fresh=is_fresh)

    def starts(self, index: int) -> Ids:
        """Where in the stream the first target of each row of batch `index` is."""
        epoch, step = divmod(index, self.per_epoch)
        key = self._key(epoch)
        turn = key % len(self.stream)
        rows = np.arange(self.n_batch, dtype=np.int64)
        first, _ = self._place(epoch, step)
        if self.order == "stream":
            starts = rows * (len(self.stream) // self.n_batch) + first
        else:
            windows = (step * self.n_batch + rows) % self.n_windows  # fewer windows than rows: some come twice
            starts = permute(windows, self.n_windows, seed=key) * self.n_context
        return (turn + starts) % len(self.stream)

    def _key(self, epoch: int) -> int:
        return int(hash_each(np.array([epoch], dtype=np.uint64), self.seed)[0])

    def _place(self, epoch: int, step: int) -> tuple[int, int]:
        """Where the windows of a batch begin within their lanes, and how long they are."""
        if self._lengths is None:
            return step * self.n_context, self.n_context
        firsts, lengths = self._places(epoch)
        return int(firsts[step]), int(lengths[step])

    def _places_of(self, epoch: int) -> tuple[Ids, Ids]:
        assert self._lengths is not None
        n = len(self._lengths)
        lengths = self._lengths[permute(np.arange(n), n, seed=self._key(epoch))]
        return np.cumsum(lengths) - lengths, lengths

    def _window(self, start: int, T: int) -> Ids:
        """Tokens start - 1 .. start + T - 1 of the ring; (T + 1,)."""
        L, first, end = len(self.stream), start - 1, start + T
        if first < 0:
            return np.concatenate([self.stream[L - 1 : L], self.stream[0:end]])
        if end <= L:
            return self.stream[first:end]
        return np.concatenate([self.stream[first:L], self.stream[0 : end - L]])


def vary_lengths(n_tokens: int, n_context: int, seed: int) -> Ids:
    """Lengths around n_context that add up to n_tokens. What is left at the end makes the last window longer.

    >>> vary_lengths(12, 7, seed=0).sum()
    np.int64(12)
    """
    shortest = min(SHORTEST, n_context)
    n = n_tokens // shortest + 1  # as many as could be needed
    draws = hash_each(np.arange(3 * n, dtype=np.uint64), ~seed).reshape(3, n) / 2.0**64  # uniform in [0, 1)
    centres = np.where(draws[0] < P_FULL, n_context, n_context / 2)
    # Two uniform numbers make a normal one (Box & Muller 1958); 1 - u is never 0.
    normal = np.sqrt(-2 * np.log1p(-draws[1])) * np.cos(2 * np.pi * draws[2])
    lengths: Ids = np.maximum(shortest, np.rint(centres + SPREAD * normal)).astype(np.int64)
    n_whole = max(1, int(np.searchsorted(np.cumsum(lengths), n_tokens, side="right")))
    lengths = lengths[:n_whole]
    rest = n_tokens - int(lengths.sum())
    if rest >= shortest:
        return np.append(lengths, rest)
    lengths[-1] += rest
    return lengths


def permute(indices: Ids, n: int, *, seed: int) -> Ids:
    """Where each of `indices` goes in a seeded permutation of range(n), without making the other n entries.

    A Feistel network permutes the smallest power of two that holds n; indices that leave range(n) are sent
    through again until they are back (cycle walking). Unlike a shuffled array it costs nothing to open in the middle
    of an epoch, and does not depend on numpy's version.

    >>> sorted(permute(np.arange(10), 10, seed=3).tolist()) == list(range(10))
    True
    """
    n_bits = max(2, int(n - 1).bit_length())
    n_right = n_bits // 2
    n_left = n_bits - n_right
    result = indices.astype(np.uint64)
    outside = np.ones(len(result), dtype=np.bool_)
    while outside.any():
        left, right = result[outside] >> np.uint64(n_right), result[outside] & _ones(n_right)
        for round_number in range(3):  # two half-rounds each, so that both sides get their widths back
            left ^= hash_each(right, seed * 8 + 2 * round_number) & _ones(n_left)
            right ^= hash_each(left, seed * 8 + 2 * round_number + 1) & _ones(n_right)
        result[outside] = (left << np.uint64(n_right)) | right
        outside = result >= np.uint64(n)
    return result.astype(np.int64)


def _ones(n_bits: int) -> np.uint64:
    return np.uint64(2**n_bits - 1)


def hash_each(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """splitmix64 (Steele et al. 2014): 64 well-mixed bits for each value."""
    with np.errstate(over="ignore"):  # arithmetic is modulo 2^64
        z = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
