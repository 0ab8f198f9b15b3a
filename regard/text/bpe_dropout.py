"""BPE dropout: a word is cut differently each time it is met (Provilkov et al. 2020).

    u = the bytes of the word
    repeat:  M = the merges that apply somewhere in u, each left out with probability p
             if M is empty, stop;  else apply the one that was learned first, leftmost where it applies twice

p = 0 is plain BPE, p = 1 gives bytes. The paper samples afresh for every occurrence; here each word has N_SAMPLES
samples, made when they are first asked for, and a hash of where the word stands says which of them is taken. So a text
at a place is always cut alike, whatever was cut before, and most words are a look-up.
"""

from __future__ import annotations

import hashlib
import json
import random
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.text.tokenizer import Tokenizer

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
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._ids: dict[str, int] = tokenizer.hf.get_vocab()
        self._samples: dict[tuple[str, int], list[int]] = {}

    def encode(self, text: str, *place: int) -> NDArray[np.int64]:
        """The ids of `text` where it stands at `place`; no end mark is added."""
        normalizer, pre_tokenizer = self.tokenizer.hf.normalizer, self.tokenizer.hf.pre_tokenizer
        assert pre_tokenizer is not None, "every BPE tokenizer that is read has one"
        normal = text if normalizer is None else normalizer.normalize_str(text)
        words = [word for word, _ in pre_tokenizer.pre_tokenize_str(normal)]
        choices = hashlib.shake_128(f"{self.seed} {place}".encode()).digest(len(words))
        ids = [i for word, choice in zip(words, choices, strict=True) for i in self._sample(word, choice % N_SAMPLES)]
        return np.array(ids, dtype=np.int64)

    def _sample(self, word: str, number: int) -> list[int]:
        if len(word) > MAX_WORD:
            return [token.id for token in self.tokenizer.hf.model.tokenize(word)]
        found = self._samples.get((word, number))
        if found is None:
            if len(self._samples) >= MAX_REMEMBERED:
                self._samples.clear()
            digest = hashlib.blake2b(f"{self.seed} {number} {word}".encode(), digest_size=8).digest()
            found = [self._ids[part] for part in self._cut(word, random.Random(int.from_bytes(digest)))]
            self._samples[word, number] = found
        return found

    def _cut(self, word: str, draws: random.Random) -> list[str]:
        parts = list(word)
        while True:
            kept = [
                (rank, i)
                for i, pair in enumerate(pairwise(parts))
                if (rank := self._ranks.get(pair)) is not None and draws.random() >= self.p
            ]
            if not kept:
                return parts
            _, i = min(kept)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
