"""What a head of attention does, named by measurement.

For every pattern p the share of a head's weight that goes where p says, averaged over the tokens q of the text that
may look at two keys at least:

    share_p = mean_q Σ_k a[q, k] [k fits p at q]        even_p = the same for weights that are even over the keys of q

    itself          k = q                 own word    another piece of the word that q is a piece of
    previous token  k = q - 1             same word   the same word at another place
    next token      k = q + 1             marks       a separator or punctuation
    first token     k = 0, for q > 0

A head is named after the pattern with the largest share_p - even_p, where share_p ≥ MIN_SHARE and the difference is at
least MIN_GAIN. Patterns of places, on the left, come first: a head that looks at the token before looks at its own
word, too, where that has several pieces. "own word" and "same word" are measured over the tokens that have such a key.
A head that fits none of them looks at "one word" where one key, not the first, has such a share of the tokens that may
look at it, which are half of all at least. Any other head is broad where its perplexity e^H is at least MIN_BREADTH of
the number of keys, on average, and mixed elsewhere (after Clark et al. 2019, who name such heads of BERT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_SHARE = 0.4
MIN_GAIN = 0.2
MIN_BREADTH = 0.6
OF_WORDS = ("own word", "same word", "marks")  # all others are patterns of places
MIN_PLACES = 2  # tokens that have a key of the pattern: fewer are too few to name a head by

Weights = NDArray[np.floating]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Pattern:
    """The name of what a head does and the share of its weight that says so; for broad and mixed heads e^H / keys.

    >>> str(Pattern("previous token", 0.72)), str(Pattern("broad", 0.9))
    ('previous token 72%', 'broad: spread over 90% of the words')
    """

    name: str
    share: float

    def __str__(self) -> str:
        is_spread = self.name in ("broad", "mixed")
        return (
            f"{self.name}: spread over {self.share:.0%} of the words" if is_spread else f"{self.name} {self.share:.0%}"
        )


def list_patterns(
    tokens: Sequence[str], words: Sequence[int], word_texts: Sequence[str], is_own: Sequence[bool]
) -> dict[str, Bools]:
    """For each pattern where it says to look: (T, T), True where key k fits at query q.

    `is_own` tells the tokens of the text from marks that were put around it.
    """
    T = len(tokens)
    q, k = np.indices((T, T))
    number = np.array(words)
    spelled = np.array([word_texts[w].lower() for w in words])
    is_word = np.array([any(c.isalnum() for c in word_texts[w]) for w in words])
    is_mark = ~is_word | ~np.array(is_own)
    is_mark[:1] &= np.array(is_own[:1])  # the first token has a pattern of its own
    same_word = (spelled[:, None] == spelled[None]) & (number[:, None] != number[None]) & is_word[:, None]
    return {
        "itself": q == k,
        "previous token": k == q - 1,
        "next token": k == q + 1,
        "first token": (k == 0) & (q > 0),
        "own word": (number[:, None] == number[None]) & (q != k),
        "same word": same_word,
        "marks": np.broadcast_to(is_mark[None], (T, T)) & (q != k),
    }


class HeadNamer:
    """Names heads whose queries may look at the same keys; what is the same for all of them is counted once."""

    def __init__(self, patterns: Mapping[str, Bools], can_see: Bools, is_own: Sequence[bool]) -> None:
        """`can_see` is True where query q may look at key k; `is_own` tells the tokens of the text from marks."""
        self.patterns, self.can_see = patterns, can_see
        self.rows = np.array(is_own) & (can_see.sum(axis=1) >= 2)
        self._counted = self._count(self.rows)

    def name(self, weights: Weights) -> Pattern:
        """The pattern of one head's weights (T, T)."""
        rows = self.rows & (weights.sum(axis=1) > 0)
        if not rows.any():
            return Pattern("mixed", 0.0)
        n_seen, fitting = self._counted if np.array_equal(rows, self.rows) else self._count(rows)
        a = weights[rows].astype(np.float64)
        a /= a.sum(axis=1, keepdims=True)
        best, gain = Pattern("mixed", 0.0), MIN_GAIN
        for name, (there, even) in fitting.items():
            if name in OF_WORDS and best.name != "mixed" and best.name not in OF_WORDS:  # a pattern of places fits
                break
            share = float(a.ravel() @ there.ravel())
            if share >= MIN_SHARE and share - even > gain:
                best, gain = Pattern(name, share), share - even
        if best.name != "mixed":
            return best
        if (column := self._find_column(a, rows)) is not None:
            return Pattern("one word", column)
        entropy = -(a * np.log(np.where(a > 0, a, 1.0))).sum(axis=1)
        breadth = float((np.exp(entropy) / n_seen).mean())
        return Pattern("broad" if breadth >= MIN_BREADTH else "mixed", breadth)

    def _find_column(self, a: Weights, rows: Bools) -> float | None:
        if "itself" not in self.patterns:
            return None
        seen = self.can_see[rows]
        return find_column(a, seen / seen.sum(axis=1, keepdims=True), seen & ~self.patterns["itself"][rows])

    def _count(self, rows: Bools) -> tuple[NDArray[np.int64], dict[str, tuple[NDArray[np.float64], float]]]:
        """How many keys each row sees; and for each pattern [k fits p at q] over the number of rows, and even_p."""
        seen = self.can_see[rows]
        n_seen = seen.sum(axis=1)
        found = {}
        for name, fits in self.patterns.items():
            there = fits[rows] & seen
            is_of_words = name in ("own word", "same word")
            n_rows = int(there.any(axis=1).sum()) if is_of_words else len(there)
            if is_of_words and n_rows < MIN_PLACES:
                continue
            shares = there / max(1, n_rows)
            found[name] = shares, float((shares / n_seen[:, None]).sum())
        return n_seen, found


def find_column(a: Weights, even: Weights, others: Bools) -> float | None:
    """The share of the key that most queries look at, the first left out; None where no key stands out.

    `a` (Q, T) are weights and `even` what they would be without a choice; `others` is True where a query may look at
    another token.

    >>> a = np.array([[0.5, 0.5, 0, 0], [0.2, 0.7, 0.1, 0], [0.1, 0.8, 0, 0.1]])
    >>> find_column(a, np.full((3, 4), 0.25), np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]], dtype=bool))
    0.75
    """
    n = others.sum(axis=0)
    share, plain = ((weights * others).sum(axis=0) / np.maximum(n, 1) for weights in (a, even))
    stands_out = (share >= MIN_SHARE) & (share - plain > MIN_GAIN) & (n >= max(MIN_PLACES, len(a) / 2))
    stands_out[0] = False
    return float(share[stands_out].max()) if stands_out.any() else None
