"""BPE dropout of many words at once, with the draws and so the cuts of `BpeDropout`.

The parts of all words stand in one array, linked to their neighbours. In each round every word that is not done merges
once, and what a round costs depends on how many merges apply.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from regard.text.bpe_dropout import MAX_WORD, BpeDropout

Ids = NDArray[np.int64]
Asked = list[tuple[str, int]]  # words and the numbers of their samples


class DropoutAtOnce:
    """The samples of many words.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=259), ["the the the"])
    >>> DropoutAtOnce(BpeDropout(tokenizer, p=0.0)).samples([("the", 0), ("eh", 0)])
    (array([258,  69,  72]), array([1, 2]))
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
        n_bytes = np.array([len(word) for word, _ in asked], dtype=np.int64)
        if n_bytes.max() > MAX_WORD:  # too rare to be worth a way of its own
            found = [self._dropout.ids_of(*one) for one in asked]
            return np.array([i for ids in found for i in ids]), np.array([len(ids) for ids in found])
        word_of = np.repeat(np.arange(len(asked)), n_bytes)
        codes = np.frombuffer("".join(word for word, _ in asked).encode("utf-16-le"), dtype="<u2")
        parts = self._cut(self._id_of_character[codes], word_of, *self._draws(asked, n_bytes))
        is_part = parts != self._nothing
        return parts[is_part], np.bincount(word_of[is_part], minlength=len(asked))

    def _cut(self, parts: Ids, word_of: Ids, is_dropped: NDArray[np.bool_], n_drawn: Ids) -> Ids:
        """The parts of all words, each at its first byte, and `nothing` at its others.

        after[k] and before[k] are the places of the neighbours of the part at k; `end`, where there is nothing, is that
        of every first and last part. ranks[k] is that of the merge of the parts at k and after[k].
        """
        end, n_words = len(parts), len(n_drawn)
        parts = np.append(parts, self._nothing)
        after, before = np.arange(1, end + 2), np.arange(-1, end)
        is_first = np.diff(word_of, prepend=-1) != 0
        before[:end][is_first], after[-1] = end, end
        after[:end][np.append(is_first[1:], True)] = end
        ranks = self._rank_of(parts, parts[after])
        while len(applies := np.flatnonzero(ranks < self._n_merges)):
            word = word_of[applies]
            n_applies = np.bincount(word, minlength=n_words)
            shift = n_drawn - (np.cumsum(n_applies) - n_applies)
            is_kept = ~is_dropped[shift[word] + np.arange(len(word))]
            n_drawn = n_drawn + n_applies
            goes_on = np.zeros(n_words, dtype=np.bool_)
            goes_on[word[is_kept]] = True
            ranks[applies[~goes_on[word]]] = self._n_merges
            kept, word = applies[is_kept], word[is_kept]
            if not len(kept):
                break
            firsts = np.flatnonzero(np.diff(word, prepend=-1))
            i = (
                np.minimum.reduceat(ranks[kept] * end + kept, firsts) % end
            )  # the lowest rank, and leftmost, of each word
            j = after[i]
            parts[i], parts[j] = self._merged[ranks[i]], self._nothing
            after[i] = after[j]
            before[after[i]] = i
            ranks[j] = self._n_merges
            left = np.concatenate([before[i], i])  # the pairs that the new parts are in
            ranks[left] = self._rank_of(parts[left], parts[after[left]])
        return parts[:end]

    def _draws(self, asked: Asked, n_bytes: Ids) -> tuple[NDArray[np.bool_], Ids]:
        """Whether each draw leaves out a merge, those of all words one after the other, and where a word's begin."""
        n_draws = n_bytes * (n_bytes - 1) // 2
        start, shake = f"{self._dropout.seed} ", hashlib.shake_128
        digests = [
            shake(f"{start}{number} {word}".encode()).digest(4 * n)
            for (word, number), n in zip(asked, n_draws.tolist(), strict=True)
        ]
        draws = np.frombuffer(b"".join(digests), dtype="<u4")
        return draws < self._dropout.p * 2**32, np.cumsum(n_draws) - n_draws

    def _rank_of(self, a: Ids, b: Ids) -> Ids:
        pair = self._pair(a, b)
        at = np.searchsorted(self._pairs, pair)
        ranks: Ids = np.where(self._pairs[at] == pair, self._ranks[at], self._n_merges)
        return ranks

    def _pair(self, a: Ids, b: Ids) -> Ids:
        return a * (self._nothing + 1) + b
