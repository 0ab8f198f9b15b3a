"""BPE dropout: a word is cut differently each time it is met (Provilkov et al. 2020).

    u = the bytes of the word
    repeat:  M = the merges that apply somewhere in u, each left out with probability p
             if M is empty, stop;  else apply the one that was learned first, leftmost where it applies twice

p = 0 is plain BPE, p = 1 gives bytes. The paper samples afresh for every occurrence; here each word has N_SAMPLES
samples, made when they are first asked for, and a hash of where the word stands says which of them is taken. So a text
at a place is always cut alike, whatever was cut before, and most words are a look-up. (What is looked up is a unit, a
word with the white space before it and the punctuation around it.)

`BpeDropout` is the rule, one text after the other. `DropoutAtOnce` gives the same samples of many words at once.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.text.tokenizer import Tokenizer
from regard.text.units import split_units

N_SAMPLES = 32  # divides 256: a byte of the hash picks each with the same probability
MAX_REMEMBERED = 2**18  # samples, about 300 bytes each
MAX_WORD = 200  # bytes: the time to sample grows with their square, and what is longer is cut as always

Ids = NDArray[np.int64]
Asked = list[tuple[str, int]]  # words and the numbers of their samples


class BpeDropout:
    """Encodes with merges left out; `place`, some whole numbers, picks the samples.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=259), ["the the the"])
    >>> tokenizer.encode("the"), BpeDropout(tokenizer, p=1.0).encode("the", 0)
    (array([258], dtype=int32), array([84, 72, 69]))
    """

    def __init__(self, tokenizer: Tokenizer, p: float, seed: int = 0) -> None:
        if tokenizer.kind != "bpe" or not tokenizer.is_lossless:
            raise RegardError(
                f"BPE dropout needs a byte-level BPE tokenizer with all 256 bytes, not one of '{tokenizer.kind}'. Set "
                "tokenizer.kind to bpe, or p_bpe_dropout to 0."
            )
        if not 0 <= p <= 1:
            raise RegardError(f"p_bpe_dropout must be between 0 and 1, not {p:g}.")
        self.tokenizer, self.p, self.seed = tokenizer, p, seed
        merges = json.loads(tokenizer.json)["model"]["merges"]
        pairs = (tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in merges)
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self.vocab: dict[str, int] = tokenizer.hf.get_vocab()
        self._samples: dict[tuple[str, int], list[int]] = {}

    def encode(self, text: str, *place: int) -> Ids:
        """The ids of `text` where it stands at `place`; no end mark is added."""
        units = self.units(text)
        choices = self.choices(place, len(units))
        ids = [i for unit, choice in zip(units, choices, strict=True) for i in self._sample(unit, choice % N_SAMPLES)]
        return np.array(ids, dtype=np.int64)

    def units(self, text: str) -> list[str]:
        normalizer = self.tokenizer.hf.normalizer
        return split_units(text if normalizer is None else normalizer.normalize_str(text))

    def words(self, unit: str) -> list[str]:
        """The words and punctuation that the tokenizer cuts a unit into, a character for each byte."""
        pre_tokenizer = self.tokenizer.hf.pre_tokenizer
        assert pre_tokenizer is not None, "every BPE tokenizer that is read has one"
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(unit)]

    def choices(self, place: tuple[int, ...], n_units: int) -> bytes:
        """For each unit of a text at `place` the number of its sample, modulo N_SAMPLES."""
        return hashlib.shake_128(f"{self.seed} {place}".encode()).digest(n_units)

    def _sample(self, unit: str, number: int) -> list[int]:
        """Sample `number` of a unit: of all its words."""
        found = self._samples.get((unit, number))
        if found is None:
            if len(self._samples) >= MAX_REMEMBERED:
                self._samples.clear()
            found = [i for word in self.words(unit) for i in self.ids_of(word, number)]
            self._samples[unit, number] = found
        return found

    def ids_of(self, word: str, number: int) -> list[int]:
        """Sample `number` of a word."""
        if len(word) > MAX_WORD:
            return [token.id for token in self.tokenizer.hf.model.tokenize(word)]
        n_draws = len(word) * (len(word) - 1) // 2  # in u of n parts at most n - 1 merges apply
        digest = hashlib.shake_128(f"{self.seed} {number} {word}".encode()).digest(4 * n_draws)
        return [self.vocab[part] for part in self._cut(word, iter(struct.unpack(f"<{n_draws}I", digest)))]

    def _cut(self, word: str, draws: Iterator[int]) -> list[str]:
        rank_of, threshold = self.ranks.get, self.p * 2**32
        parts = list(word)
        ranks = [rank_of(pair) for pair in pairwise(parts)]  # of the merge of parts i and i + 1; None: there is none
        while True:
            kept = [(rank, i) for i, rank in enumerate(ranks) if rank is not None and next(draws) >= threshold]
            if not kept:
                return parts
            _, i = min(kept)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            before = max(i - 1, 0)
            ranks[before : i + 2] = [rank_of(pair) for pair in pairwise(parts[before : i + 2])]


class DropoutAtOnce:
    """The samples of many words, with the draws and so the cuts of `BpeDropout`.

    The parts of all words stand in one array, linked to their neighbours. In each round every word that is not done
    merges once, and what a round costs depends on how many merges apply.

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
