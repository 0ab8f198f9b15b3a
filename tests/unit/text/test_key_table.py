"""The hash table equals a dict, however its keys fall on one another."""

from __future__ import annotations

import numpy as np
import pytest

from regard.text.key_table import KeyTable


def check(columns: list[np.ndarray], asked: list[np.ndarray]) -> None:
    rows = {key: row for row, key in enumerate(zip(*(c.tolist() for c in columns), strict=True))}
    expected = [rows.get(key, -1) for key in zip(*(c.tolist() for c in asked), strict=True)]
    assert KeyTable(columns).find(asked).tolist() == expected


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 64, 1000])
def test_one_column_finds_what_a_dict_finds(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    keys = rng.choice(3 * n_rows + 1, n_rows, replace=False).astype(np.uint64)
    check([keys], [np.arange(3 * n_rows + 5, dtype=np.uint64)])


def test_two_columns_are_both_compared() -> None:
    low, high = (part.ravel().astype(np.uint64) for part in np.mgrid[0:40, 0:40])
    is_stored = (low + high) % 3 == 0
    check([low[is_stored], high[is_stored]], [low, high])


@pytest.mark.parametrize("home", [0, 2**63, 2**64 - 1])
def test_keys_with_one_home_lie_behind_one_another(home: int) -> None:
    # key · M has these highest bits: they all want the same slot, the last one of the table among them.
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    products = [(home - i if home else i) % 2**64 for i in range(60)]
    keys = np.array([p * inverse % 2**64 for p in products], np.uint64)
    check([keys[:40]], [keys])


def test_large_keys_are_told_apart_by_their_highest_bit() -> None:
    keys = np.array([5, 2**63 + 5, 2**64 - 1], np.uint64)
    check([keys], [np.array([2**63 + 5, 2**64 - 1, 5, 2**63], np.uint64)])
