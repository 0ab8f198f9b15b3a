"""BPE dropout: a word is cut differently each time it is met (Provilkov et al. 2020).

    u = the bytes of the word
    repeat:  M = the merges that apply somewhere in u, each left out with probability p
             if M is empty, stop;  else apply the one that was learned first, leftmost where it applies twice

p = 0 is plain BPE, p = 1 gives bytes. The paper samples afresh for every occurrence; here each word has N_SAMPLES
samples, made when they are first asked for, and a hash of where the word stands says which of them is taken. So a text
at a place is always cut alike, whatever was cut before, and most words are a look-up. (What is looked up is a unit, a
word with the white space before it and the punctuation around it.)

This is the rule, one text after the other. `SamplePool` gives the same ids for many texts at once.
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
from regard.text.units import units_of

N_SAMPLES = 32  # divides 256: a byte of the hash picks each with the same probability
MAX_REMEMBERED = 2**18  # samples, about 300 bytes each
MAX_WORD = 200  # bytes: the time to sample grows with their square, and what is longer is cut as always


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

    def encode(self, text: str, *place: int) -> NDArray[np.int64]:
        """The ids of `text` where it stands at `place`; no end mark is added."""
        units = self.units(text)
        choices = self.choices(place, len(units))
        ids = [i for unit, choice in zip(units, choices, strict=True) for i in self._sample(unit, choice % N_SAMPLES)]
        return np.array(ids, dtype=np.int64)

    def units(self, text: str) -> list[str]:
        normalizer = self.tokenizer.hf.normalizer
        return units_of(text if normalizer is None else normalizer.normalize_str(text))

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
