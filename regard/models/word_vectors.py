"""Words and their vectors: which are near each other, and which word is to a third as a second is to a first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, nearest

Matrix = NDArray[np.float32]
Neighbours = list[tuple[str, float]]


class WordVectors:
    """A vector for each of a list of words, most frequent first where that is known.

    A word that is not in the list is looked for in lower case; `compose` makes a vector of any other where words are
    made of subwords, or returns None.
    """

    def __init__(
        self, words: Sequence[str], matrix: Matrix, compose: Callable[[str], Matrix | None] | None = None
    ) -> None:
        assert len(words) == len(matrix), "every word has a row"
        self.words, self.matrix, self._compose = list(words), matrix, compose

    def __len__(self) -> int:
        return len(self.words)

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word; of one that comes twice, the first."""
        return {word: i for i, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def directions(self) -> Matrix:
        """Rows of length one; a row of zeros stays one."""
        return _normalise(self.matrix)

    def find(self, word: str) -> int | None:
        """The row of a word as it is spelled, or in lower case; None where there is neither."""
        found = self.index.get(word)
        return self.index.get(word.lower()) if found is None else found

    def knows(self, word: str) -> bool:
        """Whether a word has a vector, of its own or made of its subwords."""
        if self.find(word) is not None:
            return True
        return self._compose is not None and bool(word) and self._compose(word.lower()) is not None

    def vector(self, word: str) -> Matrix:
        """The vector of a word; RegardError with the nearest spelling where it has none."""
        row = self.find(word)
        if row is not None:
            return np.asarray(self.matrix[row])
        made = None if self._compose is None or not word else self._compose(word.lower())
        if made is None:
            raise RegardError(f"'{word}' is not among the {len(self):,} words.{self._suggest(word)}")
        return made

    def _suggest(self, word: str) -> str:
        given = word.lower()
        near = [w for w in self.words if w[:1] == given[:1] and abs(len(w) - len(given)) <= 2]
        return nearest(given, near) or " Words are those of the text it was trained on, or of the file."

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words' vectors."""
        a, b = (_normalise(self.vector(word)[None])[0] for word in (first, second))
        return float(a @ b)

    def nearest(self, word: str, n: int = 10) -> Neighbours:
        """The n words whose vectors have the largest cosine with a word's, without the word itself."""
        return self._rank(self.vector(word), {self.find(word)}, n)

    def analogy(self, first: str, second: str, third: str, n: int = 5) -> Neighbours:
        """The words that are to `third` as `second` is to `first`: near second - first + third, none of the three.

        All three are made to length one before (Mikolov et al. 2013; 3CosAdd).
        """
        a, b, c = (_normalise(self.vector(word)[None])[0] for word in (first, second, third))
        return self._rank(b - a + c, {self.find(word) for word in (first, second, third)}, n)

    def _rank(self, vector: Matrix, without: set[int | None], n: int) -> Neighbours:
        cosines = self.directions @ _normalise(vector[None])[0]
        cosines[[row for row in without if row is not None]] = -np.inf
        n = min(n, len(self) - len(without - {None}))
        best = np.argpartition(-cosines, min(n, len(self) - 1))[:n]
        return [(self.words[i], float(cosines[i])) for i in best[np.argsort(-cosines[best], kind="stable")]]

    def solve_analogies(self, questions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row that answers each (a, b, c), rows of words: near b - a + c and none of the three."""
        answers = np.zeros(len(questions), dtype=np.int64)
        for begin in range(0, len(questions), 512):
            a, b, c = questions[begin : begin + 512].T
            wanted = self.directions[b] - self.directions[a] + self.directions[c]
            cosines = wanted @ self.directions.T  # a positive multiple of it
            for known in (a, b, c):
                cosines[np.arange(len(known)), known] = -np.inf
            answers[begin : begin + 512] = cosines.argmax(axis=1)
        return answers


def _normalise(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
