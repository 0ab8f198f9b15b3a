"""A hash table in flat arrays, filled and asked for many keys at once by numpy.

    home(key) = the highest bits of key · M mod 2^64,  M = 2^64 / golden ratio  (Knuth 1973, 6.4)

A key lies in its home or, where that is taken, in the first free slot after it (linear probing). Filled in the order of
their homes, the i-th key lies in slot max over j ≤ i of (home_j - j) + i: one running maximum and no loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Rows = NDArray[np.int32]

ABSENT = -1  # the row of a key that is not there
MAX_ROWS = 2**31 - 1
_M = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class KeyTable:
    """The row of each key; a key is one or more columns of 64-bit numbers, and no two rows have the same.

    Slots hold rows, four bytes each and two to four of them a key, and the columns stay where they are.

    >>> table = KeyTable([np.array([7, 30, 31], np.uint64)])
    >>> table.find([np.array([31, 8, 7], np.uint64)])
    array([ 2, -1,  0], dtype=int32)
    """

    def __init__(self, columns: Sequence[Keys]) -> None:
        n_rows = len(columns[0])
        assert n_rows <= MAX_ROWS
        self._columns = columns
        n_bits = max(1, (2 * n_rows - 1).bit_length())
        self._shift = np.uint64(64 - n_bits)
        # Sorted by home; a row below 2^32 fits beside it, and one array of whole numbers sorts fastest.
        home = self._home(columns) << _HALF
        home |= np.arange(n_rows, dtype=np.uint64)
        home.sort()
        rows = home.astype(np.uint32).view(np.int32)  # the lower half
        home >>= _HALF
        slot = home.view(np.int64)
        count = np.arange(n_rows)
        slot -= count
        np.maximum.accumulate(slot, out=slot)
        slot += count
        n_slots = max(2**n_bits, int(slot[-1]) + 1) if n_rows else 1
        self._slots = np.full(n_slots + 1, ABSENT, np.int32)  # after the last key comes a free one: a search ends
        self._slots[slot] = rows

    def find(self, columns: Sequence[Keys]) -> Rows:
        """The row of each key, ABSENT where there is none."""
        if not len(self._columns[0]):
            return np.full(len(columns[0]), ABSENT, np.int32)
        slot = self._home(columns).view(np.int64)
        rows = self._slots.take(slot)
        wrong = np.flatnonzero(self._differ(rows, columns))
        while len(wrong):
            slot[wrong] += 1
            again = self._slots.take(slot.take(wrong))
            rows[wrong] = again
            wrong = wrong[self._differ(again, [column.take(wrong) for column in columns])]
        return rows

    def _home(self, columns: Sequence[Keys]) -> Keys:
        mixed = columns[0] * _M
        for column in columns[1:]:
            mixed ^= mixed >> _HALF  # what the first column says must reach the lower bits too
            mixed += column
            mixed *= _M
        mixed >>= self._shift
        return mixed

    def _differ(self, rows: Rows, columns: Sequence[Keys]) -> NDArray[np.bool_]:
        """Whether a slot holds another key than the one asked for: the search goes on."""
        pairs = zip(self._columns, columns, strict=True)
        ours, asked = next(pairs)  # a free slot is compared with row 0, and sorted out at the end
        is_other: NDArray[np.bool_] = ours.take(rows, mode="clip") != asked
        for ours, asked in pairs:
            is_other |= ours.take(rows, mode="clip") != asked
        is_other &= rows != ABSENT
        return is_other
