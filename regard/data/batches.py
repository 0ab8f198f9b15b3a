"""Batches as a pure function of one integer, which is the whole position in the data.

A stream x_0 .. x_{L-1} is read as a ring: the token before x_0 is x_{L-1}, which is <eos>, the start symbol. So every
token of the stream is somebody's target, and an epoch may start anywhere: epoch e is the ring turned by a seeded
offset, and what does not fill a last batch is a different piece of text each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.stream import Stream
from regard.errors import RegardError, nearest

ORDERS = ("stream", "shuffle")

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
    """

    def __init__(self, stream: Stream, *, n_batch: int, n_context: int, seed: int = 0, order: str = "stream") -> None:
        if order not in ORDERS:
            raise RegardError(f"order must be one of {', '.join(ORDERS)}, not {order!r}.{nearest(order, ORDERS)}")
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

    @property
    def tokens_per_batch(self) -> int:
        return self.n_batch * self.n_context

    def at(self, index: int) -> Batch:
        """Batch `index`; the same arguments give the same arrays, whatever was asked before."""
        epoch, step = divmod(index, self.per_epoch)
        key = int(_hash(np.array([epoch], dtype=np.uint64), self.seed)[0])
        turn = key % len(self.stream)
        rows = np.arange(self.n_batch, dtype=np.int64)
        if self.order == "stream":
            starts = rows * (len(self.stream) // self.n_batch) + step * self.n_context
        else:
            windows = (step * self.n_batch + rows) % self.n_windows  # fewer windows than rows: some come twice
            starts = permuted(windows, self.n_windows, seed=key) * self.n_context
        text = np.stack([self._window((turn + int(start)) % len(self.stream)) for start in starts])  # (B, T + 1)
        mask = np.ones((self.n_batch, self.n_context), dtype=np.bool_)
        is_fresh = step == 0 or self.order == "shuffle"
        return Batch(inputs=text[:, :-1], targets=text[:, 1:], mask=mask, is_fresh=is_fresh)

    def _window(self, start: int) -> Ids:
        """Tokens start - 1 .. start + T - 1 of the ring; (T + 1,)."""
        L, first, end = len(self.stream), start - 1, start + self.n_context
        if first < 0:
            return np.concatenate([self.stream[L - 1 : L], self.stream[0:end]])
        if end <= L:
            return self.stream[first:end]
        return np.concatenate([self.stream[first:L], self.stream[0 : end - L]])


def permuted(indices: Ids, n: int, *, seed: int) -> Ids:
    """Where each of `indices` goes in a seeded permutation of range(n), without making the other n entries.

    A Feistel network permutes the smallest power of two that holds n; indices that leave range(n) are sent
    through again until they are back (cycle walking). Unlike a shuffled array it costs nothing to open in the middle
    of an epoch, and does not depend on numpy's version.

    >>> sorted(permuted(np.arange(10), 10, seed=3).tolist()) == list(range(10))
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
            left ^= _hash(right, seed * 8 + 2 * round_number) & _ones(n_left)
            right ^= _hash(left, seed * 8 + 2 * round_number + 1) & _ones(n_right)
        result[outside] = (left << np.uint64(n_right)) | right
        outside = result >= np.uint64(n)
    return result.astype(np.int64)


def _ones(n_bits: int) -> np.uint64:
    return np.uint64(2**n_bits - 1)


def _hash(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """splitmix64 (Steele et al. 2014): 64 well-mixed bits for each value."""
    with np.errstate(over="ignore"):  # arithmetic is modulo 2^64
        z = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
