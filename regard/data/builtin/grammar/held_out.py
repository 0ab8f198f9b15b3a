"""Which combinations belong to which split: a property of the grammar, the same for every seed.

A combination is held out by its hash: one in ten for the test split, one in ten for validation. A sentence of the
training split has none of these; a sentence of another split has at least one of its own and none of the third's. So
what is tested has never been trained on in that combination, while every word of it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable
from functools import lru_cache
from random import Random
from typing import TypeVar

from regard.errors import RegardError, nearest

SPLITS = ("train", "valid", "test")
ONE_IN = 10
MOST_TRIES = 10_000

T = TypeVar("T")


@lru_cache(maxsize=100_000)
def find_split(combination: Hashable) -> str:
    """The split a combination is kept for.

    >>> from collections import Counter
    >>> Counter(find_split((a, b)) for a in range(100) for b in range(100))["train"] // 100
    80
    """
    number = int.from_bytes(hashlib.blake2b(repr(combination).encode(), digest_size=8).digest(), "big") % ONE_IN
    return ("test", "valid")[number] if number < 2 else "train"


def belongs(combinations: Collection[Hashable], split: str) -> bool:
    """Whether a sentence with these combinations may stand in the split."""
    found = {find_split(combination) for combination in combinations} - {"train"}
    return found == ({split} - {"train"})


def check_split(split: str) -> None:
    if split not in SPLITS:
        raise RegardError(f"split must be one of {', '.join(SPLITS)}, not {split!r}.{nearest(split, SPLITS)}")


def draw_until(draw: Callable[[Random], T | None], *place: object) -> T:
    """The first thing that `draw` accepts, by a chance that is a pure function of `place`."""
    random = Random("/".join(map(str, place)))
    for _ in range(MOST_TRIES):
        found = draw(random)
        if found is not None:
            return found
    raise AssertionError(f"nothing fits {place}")
