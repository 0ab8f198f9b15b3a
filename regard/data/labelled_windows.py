"""Texts as rows of tokens that an encoder can read: framed, and cut into windows where they are longer than it reads.

    one text       x_1 ... x_n <end>                     BERT's vocabulary: [CLS] x_1 ... x_n [SEP]
    two texts      x_1 ... x_n <end> y_1 ... y_m <end>   [CLS] x_1 ... x_n [SEP] y_1 ... y_m [SEP]

A text that is too long is read in windows, `stride` tokens from one to the next; what comes before the text that is cut
(the question of a passage, say) stands in every window. Every token is kept in one window, that in which it is further
from an edge: so a long text gives one state a token, as a short one does, and nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer
from regard.text.word_pieces import words_of_tokens

Ids = NDArray[np.int64]
Places = NDArray[np.int32]
Mask = NDArray[np.bool_]
N_TEXTS = 2
N_CASES = 4
"""Ways to write a piece of a word (`tell_case`)."""


@dataclass(frozen=True)
class Windows:
    """One example as W rows of tokens, each no longer than the encoder reads."""

    tokens: tuple[Ids, ...]
    segments: tuple[Ids, ...]
    """0 in the first text, 1 in the second; where capitals are told, twice `tell_case` of the token is added."""
    keeps: tuple[Mask, ...]
    """Where the state of a token is taken from: each token is kept in one window."""
    places: Places = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int32))
    """(N, 2): window and position of each word that is tagged, or of each token of a passage."""
    spans: tuple[tuple[int, int], ...] = ()
    """Of a passage: the characters of each token."""

    def __len__(self) -> int:
        """How many tokens are read, those of all windows."""
        return sum(map(len, self.tokens))


class _Tokens(NamedTuple):
    """A text: its tokens, how each is written, and the characters that each came from."""

    ids: Ids
    cases: Ids
    spans: tuple[tuple[int, int], ...]


class TextFramer:
    """Makes `Windows` of texts for one tokenizer and one encoder; `max_positions` None: it reads any length.

    With `has_case` the segments tell capitals too. `takes_last`: a word is told by the state of its last piece, which
    is the only one at which a model that reads from left to right knows all of it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | ExtendedVocabulary,
        max_positions: int | None,
        stride: int | None = None,
        *,
        has_case: bool = False,
        takes_last: bool = False,
    ) -> None:
        self.tokenizer, self.max_positions, self.stride = tokenizer, max_positions, stride
        self.has_case, self.takes_last = has_case, takes_last
        marks = tokenizer.marks if isinstance(tokenizer, Tokenizer) else None
        self._before = [] if marks is None else [marks.first]
        self._after = [tokenizer.eos]  # the separator of a vocabulary with marks
        self._is_roberta = marks is not None and marks.is_roberta
        self._between = self._after * (2 if self._is_roberta else 1)
        self._encode_passage = lru_cache(maxsize=1)(self._encode)  # many questions are about one passage

    def frame(self, texts: Sequence[str]) -> Windows:
        """One text or two, of which a label is asked."""
        return self._cut([self._encode(text) for text in texts])[0]

    def frame_words(self, text: str) -> Windows:
        """A text whose words, with one space between them, are tagged: a word is told by the state of one piece.

        A word that the tokenizer makes nothing of is told by the piece before it.
        """
        found = self._encode(text)
        windows, origin = self._cut([found])
        chosen: dict[int, int] = {}
        for token, word in enumerate(words_of_tokens(self.tokenizer, text)):
            if word is not None and (self.takes_last or word not in chosen):
                chosen[word] = token
        pieces, before = [], 0
        for word in range(len(text.split(" "))):
            before = chosen.get(word, before)
            pieces.append(before)
        n = len(found.ids)
        places = origin[np.minimum(pieces, n - 1)] if n else np.zeros((len(pieces), 2), dtype=np.int32)
        return Windows(windows.tokens, windows.segments, windows.keeps, places)

    def frame_question(self, question: str, passage: str) -> Windows:
        """A question and the passage whose tokens may answer it."""
        found = self._encode_passage(passage)
        windows, origin = self._cut([self._encode(question), found])
        return Windows(windows.tokens, windows.segments, windows.keeps, origin, found.spans)

    def find_spans(self, texts: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
        """The characters of each token of texts that fit one window, as in the texts with a tab between them.

        None: the token is a mark.
        """
        spans: list[tuple[int, int] | None] = [None] * len(self._before)
        n_before = 0
        for index, text in enumerate(texts):
            spans += [None] * (len(self._between) if index else 0)
            spans += [(n_before + start, n_before + end) for start, end in self._encode(text).spans]
            n_before += len(text) + 1
        return (*spans, None)

    def _encode(self, text: str) -> _Tokens:
        ids, spans = self.tokenizer.encode_with_offsets(text)
        cases = [tell_case(text[start:end]) if self.has_case else 0 for start, end in spans]
        return _Tokens(ids.astype(np.int64), np.array(cases, dtype=np.int64), tuple(spans))

    def _cut(self, texts: Sequence[_Tokens]) -> tuple[Windows, Places]:
        """The windows, and the window and position of every token of the last text."""
        before, between = np.array(self._before, dtype=np.int64), np.array(self._between, dtype=np.int64)
        prefix = np.concatenate([before, *(part for text in texts[:-1] for part in (text.ids, between))])
        in_first = np.concatenate(
            [0 * before, *(part for text in texts[:-1] for part in (N_TEXTS * text.cases, 0 * between))]
        )
        second = 0 if self._is_roberta else len(texts) - 1
        long, in_last = texts[-1].ids, N_TEXTS * texts[-1].cases + second
        n_before_text = 0
        limit = self.max_positions
        if limit is not None and len(prefix) + len(long) + 1 > limit and len(prefix) > limit // 2:
            # The first text leaves no room for the second: both are cut as one.
            n_before_text = len(prefix) - len(before)
            long, in_last = (
                np.concatenate([prefix[len(before) :], long]),
                np.concatenate([in_first[len(before) :], in_last]),
            )
            prefix, in_first = before, in_first[: len(before)]
        room = None if limit is None else limit - len(prefix) - 1
        if room is not None and room < 1:
            raise RegardError(
                f"The encoder reads {limit} tokens at once, too few for a text and its end. Take another."
            )
        rows: list[Ids] = []
        segments: list[Ids] = []
        keeps: list[Mask] = []
        origin: list[Places] = []
        for start, first, last, end in cut_windows(len(long), room, self.stride):
            tokens = np.concatenate([prefix, long[start:end], self._after])
            keep = np.zeros(len(tokens), dtype=np.bool_)
            keep[: len(prefix)] = not rows
            keep[len(prefix) + first - start : len(prefix) + last - start] = True
            keep[-1] = end == len(long)
            at = np.arange(first, last, dtype=np.int32) + (len(prefix) - start)
            origin.append(np.stack([np.full_like(at, len(rows)), at], axis=1))
            rows.append(tokens)
            segments.append(np.concatenate([in_first, in_last[start:end], [second]]))
            keeps.append(keep)
        return Windows(tuple(rows), tuple(segments), tuple(keeps)), np.concatenate(origin)[n_before_text:]


def tell_case(piece: str) -> int:
    """How a piece is written: 0 without capitals, 1 with a capital first, 2 all in capitals, 3 otherwise.

    >>> [tell_case(piece) for piece in ("bank", "Bank", "I", "BBC", "iPhone", "1990")]
    [0, 1, 1, 2, 3, 0]
    """
    n = sum(character.isupper() for character in piece)
    if n == 0:
        return 0
    if n == 1 and piece.lstrip()[0].isupper():
        return 1
    return 2 if n == sum(character.isalpha() for character in piece) else 3


def cut_windows(n: int, room: int | None, stride: int | None = None) -> list[tuple[int, int, int, int]]:
    """Windows of at most `room` of n tokens: where each starts, the first and the end of what is kept, where it ends.

    The windows of a text depend on nothing but its length. Where two overlap, each keeps its half.

    >>> cut_windows(10, 6, 3)
    [(0, 0, 4, 6), (3, 4, 7, 9), (6, 7, 10, 10)]
    >>> cut_windows(4, None)
    [(0, 0, 4, 4)]
    """
    if room is None or n <= room:
        return [(0, 0, n, n)]
    step = max(1, min(room, room // 2 if stride is None else stride))
    starts = [0]
    while starts[-1] + room < n:
        starts.append(starts[-1] + step)
    borders = [0, *(start + (room - step) // 2 for start in starts[1:]), n]
    return [(s, borders[k], borders[k + 1], min(s + room, n)) for k, s in enumerate(starts)]
