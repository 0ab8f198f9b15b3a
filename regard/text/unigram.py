"""The unigram model of pieces (Kudo 2018), as SentencePiece cuts texts by it.

    x* = argmax_x Σ_i log p(x_i)   over all ways x to cut the text into pieces

found by the best way to each place from the best ways to those before it (Viterbi). A character without a piece of its
own may stand alone at 10 nats less than the least probable piece; such characters that follow each other are one
unknown piece.

Sums are rounded to float32 where SentencePiece rounds them: that decides between ways that are equally probable, as
"aa a" and "a aa" are.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import NamedTuple

UNKNOWN_PENALTY = 10.0


class Piece(NamedTuple):
    """text[start:end]; not known: no piece of the model."""

    start: int
    end: int
    is_known: bool


class Unigram:
    """log p of pieces.

    >>> model = Unigram({"a": -1.0, "b": -1.5, "ab": -2.0})
    >>> [(piece.start, piece.end) for piece in model.cut("abba")]
    [(0, 2), (2, 3), (3, 4)]
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        # Every beginning of a piece is in it too, so that no more characters are looked up than lead to one.
        self._scores: dict[str, float | None] = {text[:n]: None for text in scores for n in range(1, len(text))}
        self._scores |= _round(scores)
        (self._unknown,) = array("f", [min(_round(scores).values()) - UNKNOWN_PENALTY])

    def cut(self, text: str) -> list[Piece]:
        """The most probable way to cut a text; of equals, the one that SentencePiece finds first."""
        n, scores, unknown = len(text), self._scores, self._unknown
        best, starts, known = array("f", bytes(4 * (n + 1))), [-1] * (n + 1), [False] * (n + 1)
        total = array("f", [0.0])
        for start in range(n):
            before, has_own = best[start], False
            for end in range(start + 1, n + 1):
                score = scores.get(text[start:end], math.inf)
                if score is None:
                    continue
                if score == math.inf:
                    break
                total[0] = score + before
                if starts[end] < 0 or total[0] > best[end]:
                    best[end], starts[end], known[end] = total[0], start, True
                has_own = has_own or end == start + 1
            if not has_own:
                total[0] = unknown + before
                if starts[start + 1] < 0 or total[0] > best[start + 1]:
                    best[start + 1], starts[start + 1], known[start + 1] = total[0], start, False
        return _walk_back(starts, known)


def _round(scores: Mapping[str, float]) -> dict[str, float]:
    """Round numbers to float32, as SentencePiece adds them."""
    return dict(zip(scores, array("f", scores.values()), strict=True))


def _walk_back(starts: list[int], known: list[bool]) -> list[Piece]:
    pieces: list[Piece] = []
    end = len(starts) - 1
    while end > 0:
        start, is_known = starts[end], known[end]
        if not is_known and pieces and not pieces[-1].is_known:
            pieces[-1] = pieces[-1]._replace(start=start)
        else:
            pieces.append(Piece(start, end, is_known))
        end = start
    return pieces[::-1]
