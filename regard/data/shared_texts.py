"""Which pairs belong together, since they share a text: connected components.

A text is a node and a pair is an edge from its source to its target. In several parts the target of one pair is often
the source of another (a.en to a.de, and a.de to a.fr): what is held out of one must not be trained on in another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def groups_by_text(sources: Hashes, targets: Hashes) -> Hashes:
    """The same key for all pairs that share a text, at one remove or more; made of the smallest hash of their texts.

    >>> keys = groups_by_text(np.array([1, 2, 5, 7], dtype=np.uint64), np.array([2, 3, 6, 5], dtype=np.uint64))
    >>> (keys == keys[0]).tolist(), (keys == keys[2]).tolist()
    ([True, True, False, False], [False, False, True, True])
    """
    texts, ends = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    a, b = np.split(ends, 2)
    root = np.arange(len(texts))  # texts ascend: the least of a group's numbers is that of its smallest hash
    while np.any(root[a] != root[b]):
        np.minimum.at(root, np.maximum(root[a], root[b]), np.minimum(root[a], root[b]))
        while np.any(root != root[root]):
            root = root[root]
    return _mixed(texts[root[a]])


def _mixed(hashes: Hashes) -> Hashes:
    """Other hashes, one to one: by the smallest of theirs, groups of many texts would be the first to be held out."""
    mixed = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # SplitMix64 (Steele et al. 2014)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
