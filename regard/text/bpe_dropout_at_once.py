"""BPE dropout of many words at once, with the draws and so the cuts of `BpeDropout`.

Words of up to 8, 16 and 32 bytes are cut together, as the rows of one array. A row that is not done merges once a round,
so all of them lose one column a round.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from regard.text.bpe_dropout import BpeDropout

Ids = NDArray[np.int64]
Asked = list[tuple[str, int]]  # words and the numbers of their samples

WIDTHS = (8, 16, 32)  # bytes: padding costs draws, their number grows with the square; longer words go one by one


class DropoutAtOnce:
    """The samples of many words.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=259), ["the the the"])
    >>> DropoutAtOnce(BpeDropout(tokenizer, p=0.0)).samples([("the", 0), ("he", 0)])
    (array([258,  72,  69]), array([1, 2]))
    """

    def __init__(self, dropout: BpeDropout) -> None:
        self._dropout, vocab = dropout, dropout.vocab
        self._nothing = max(vocab.values()) + 1  # after the end of a word; no merge has it
        self._id_of_character = np.zeros(512, dtype=np.int64)  # the characters of bytes go up to 323
        for character, i in vocab.items():
            if len(character) == 1 and ord(character) < 512:
                self._id_of_character[ord(character)] = i
        merges = [(vocab[a], vocab[b], vocab[a + b], rank) for (a, b), rank in dropout.ranks.items()]
        a, b, merged, ranks = np.array(sorted(merges), dtype=np.int64).reshape(-1, 4).T
        self._n_merges = int(ranks.max(initial=-1)) + 1  # as a rank: there is no merge
        self._merged = np.zeros(self._n_merges, dtype=np.int64)  # by rank
        self._merged[ranks] = merged
        # Pairs go up, and after the last comes one that is never met: every search ends at some place.
        self._pairs = np.append(self._pair(a, b), np.iinfo(np.int64).max)
        self._ranks = np.append(ranks, self._n_merges)

    def samples(self, asked: Asked) -> tuple[Ids, Ids]:
        """The ids of each, one after the other, and how many each has."""
        lengths, cuts = np.zeros(len(asked), dtype=np.int64), []
        n_bytes = np.array([len(word) for word, _ in asked], dtype=np.int64)
        group = np.searchsorted(WIDTHS, n_bytes)
        for g, width in enumerate(WIDTHS):
            rows = np.flatnonzero(group == g)
            if len(rows):
                cuts += self._cut(rows, [asked[i] for i in rows.tolist()], n_bytes[rows], width)
        for i in np.flatnonzero(group == len(WIDTHS)).tolist():
            cuts.append((np.array([i]), np.array([self._dropout.ids_of(*asked[i])], dtype=np.int64)))
        for rows, parts in cuts:
            lengths[rows] = (parts != self._nothing).sum(axis=1)
        starts = np.cumsum(lengths) - lengths
        flat = np.zeros(int(lengths.sum()), dtype=np.int64)
        for rows, parts in cuts:
            is_real = parts != self._nothing
            flat[(starts[rows, None] + np.arange(parts.shape[1]))[is_real]] = parts[is_real]
        return flat, lengths

    def _cut(self, rows: Ids, asked: Asked, n_bytes: Ids, width: int) -> list[tuple[Ids, Ids]]:
        """Those rows that were done in the same round, and their parts, with `nothing` after the last."""
        is_dropped = self._draws(asked, width) < self._dropout.p * 2**32
        parts = np.full((len(rows), width), self._nothing)
        codes = np.frombuffer("".join(word for word, _ in asked).encode("utf-16-le"), dtype="<u2")
        parts[np.arange(width) < n_bytes[:, None]] = self._id_of_character[codes]
        ranks = self._rank_of(parts[:, :-1], parts[:, 1:])
        n_drawn, done = np.zeros((len(rows), 1), dtype=np.int64), []
        while parts.shape[1] > 1:
            applies = ranks < self._n_merges
            place = n_drawn + np.cumsum(applies, axis=1)  # 1 + the draw of each merge that applies
            n_drawn = place[:, -1:]
            is_kept = applies & ~np.take_along_axis(is_dropped, np.maximum(place - 1, 0), axis=1)
            kept = np.where(is_kept, ranks, self._n_merges)
            i = kept.argmin(axis=1)[:, None]  # the first of the lowest: leftmost
            rank = np.take_along_axis(kept, i, axis=1)
            goes_on = rank[:, 0] < self._n_merges
            done.append((rows[~goes_on], parts[~goes_on]))
            if not goes_on.any():
                return done
            rows, n_drawn, is_dropped = rows[goes_on], n_drawn[goes_on], is_dropped[goes_on]
            parts, ranks = self._merge(parts[goes_on], ranks[goes_on], i[goes_on], self._merged[rank[goes_on]])
        return [*done, (rows, parts)]

    def _merge(self, parts: Ids, ranks: Ids, i: Ids, merged: Ids) -> tuple[Ids, Ids]:
        """parts i and i + 1 of every row made one, and the ranks of the merges that apply then."""
        column = np.arange(parts.shape[1] - 1)
        parts = np.take_along_axis(parts, column + (column > i), axis=1)
        np.put_along_axis(parts, i, merged, axis=1)
        if parts.shape[1] == 1:
            return parts, ranks[:, :0]
        ranks = np.take_along_axis(ranks, column[:-1] + (column[:-1] >= i), axis=1)
        last = parts.shape[1] - 2
        for left in (np.maximum(i - 1, 0), np.minimum(i, last)):  # the pairs that the new part is in
            a, b = (np.take_along_axis(parts, at, axis=1) for at in (left, left + 1))
            np.put_along_axis(ranks, left, self._rank_of(a, b), axis=1)
        return parts, ranks

    def _draws(self, asked: Asked, width: int) -> NDArray[np.uint32]:
        """As many as the longest may need: the first of them are what a shorter word is given by itself."""
        n_draws, start = max(width * (width - 1) // 2, 1), f"{self._dropout.seed} "
        digests = [
            hashlib.shake_128(f"{start}{number} {word}".encode()).digest(4 * n_draws) for word, number in asked
        ]
        return np.frombuffer(b"".join(digests), dtype="<u4").reshape(len(asked), n_draws)

    def _rank_of(self, a: Ids, b: Ids) -> Ids:
        pair = self._pair(a, b)
        at = np.searchsorted(self._pairs, pair)
        ranks: Ids = np.where(self._pairs[at] == pair, self._ranks[at], self._n_merges)
        return ranks

    def _pair(self, a: Ids, b: Ids) -> Ids:
        return a * (self._nothing + 1) + b
