"""WordPiece by likelihood: which pieces of words are joined (Schuster & Nakajima 2012).

    score(a, b) = count(ab) / (count(a) count(b))

The pair with the highest score is joined, then all is counted again. Joining a pair multiplies the likelihood of the
text under a unigram model of pieces by about its score, once for every time it occurs; the score alone prefers pieces
that are hardly ever seen apart, however rare they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

PREFIX = "##"
ROOM = 1024  # pairs that the arrays begin with


class PairCounts:
    """How often each piece and each pair of neighbours occurs in words, and which words have a pair."""

    def __init__(self, words: Mapping[str, int]) -> None:
        spelled = {piece for word in words for piece in _spell(word)}
        # Every character can begin a word: one that never did here would else make the word unknown.
        self.pieces: list[str] = sorted(spelled | {character for word in words for character in word})
        ids = {piece: i for i, piece in enumerate(self.pieces)}
        self.words = [[ids[piece] for piece in _spell(word)] for word in sorted(words)]
        self.counts = [words[word] for word in sorted(words)]
        self.n_piece = np.zeros(len(self.pieces), dtype=np.int64)
        self.numbers: dict[tuple[int, int], int] = {}  # of the pairs, in the order in which they were met
        self.pairs = np.zeros((ROOM, 2), dtype=np.int64)
        self.n_pair = np.zeros(ROOM, dtype=np.int64)
        self.places: list[set[int]] = []  # by pair, the words that have it or had it once
        for number in range(len(self.words)):
            self._add(number, +1)

    def best(self, min_count: int) -> tuple[int, int] | None:
        """The pair with the highest score, the first met of several; None: there is none to join."""
        n = len(self.numbers)
        a, b = self.pairs[:n, 0], self.pairs[:n, 1]
        apart: NDArray[np.float64] = self.n_piece[a].astype(np.float64) * self.n_piece[b]
        is_there = self.n_pair[:n] >= max(min_count, 1)
        if not is_there.any():
            return None
        scores = np.where(is_there, self.n_pair[:n] / np.maximum(apart, 1), -1.0)
        at = int(scores.argmax())
        return int(a[at]), int(b[at])

    def join(self, a: int, b: int) -> None:
        """Make one piece of a and b wherever b follows a."""
        new = len(self.pieces)
        self.pieces.append(self.pieces[a] + self.pieces[b].removeprefix(PREFIX))
        self.n_piece = np.append(self.n_piece, 0)
        for number in sorted(self.places[self.numbers[a, b]]):
            word, joined, i = self.words[number], list[int](), 0
            while i < len(word):
                is_pair = word[i : i + 2] == [a, b]
                joined.append(new if is_pair else word[i])
                i += 1 + is_pair
            if len(joined) < len(word):
                self._add(number, -1)
                self.words[number] = joined
                self._add(number, +1)

    def _add(self, number: int, sign: int) -> None:
        word, count = self.words[number], sign * self.counts[number]
        for piece in word:
            self.n_piece[piece] += count
        for pair in pairwise(word):
            at = self.numbers.get(pair)
            if at is None:
                at = self.numbers[pair] = len(self.numbers)
                self.places.append(set())
                if at == len(self.n_pair):
                    self.pairs = np.concatenate([self.pairs, np.zeros_like(self.pairs)])
                    self.n_pair = np.concatenate([self.n_pair, np.zeros_like(self.n_pair)])
                self.pairs[at] = pair
            self.n_pair[at] += count
            self.places[at].add(number)


def join_by_likelihood(words: Mapping[str, int], n_pieces: int, min_count: int = 1) -> list[str]:
    """At most `n_pieces` pieces of words, the single characters first, then by what was joined first.

    Pairs seen fewer than `min_count` times are never joined.

    >>> join_by_likelihood({"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}, 14)
    ['##g', '##n', '##s', '##u', 'b', 'g', 'h', 'n', 'p', 's', 'u', '##gs', 'bu', 'bun']
    """
    counts = PairCounts(words)
    while len(counts.pieces) < n_pieces and (pair := counts.best(min_count)) is not None:
        spelled = counts.pieces[pair[0]] + counts.pieces[pair[1]].removeprefix(PREFIX)
        counts.join(*pair)
        if spelled in counts.pieces[:-1]:  # two ways to one spelling are one entry
            n_pieces += 1
    return list(dict.fromkeys(counts.pieces))


def _spell(word: str) -> list[str]:
    """
    >>> _spell("cat")
    ['c', '##a', '##t']
    """
    return [character if i == 0 else PREFIX + character for i, character in enumerate(word)]
