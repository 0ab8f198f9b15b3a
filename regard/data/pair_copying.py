"""Words that a model may copy from the source, whether or not its vocabulary has them.

    known words keep their ids;   the k-th word of this source that the target's vocabulary lacks is V + k

(See et al. 2017). `regard.text.extended` does this for one text; here the ids belong to one pair, and the target is
written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.text.tokenizer import EOS, Tokenizer
from regard.text.units import split_words

Ids = NDArray[np.int64]
NOT_COPIED = -1


class CopiedWords:
    """Sources as ids of the extended target vocabulary, and targets written with them.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> copied = CopiedWords(train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the cat", "the dog"]))
    >>> words, unknown = copied.number_source("the wug saw the cat")
    >>> words, unknown
    (array([2, 5, 6, 2, 3]), ['wug', 'saw'])
    >>> copied.number_target("wug the blick", unknown)
    array([5, 2, 1])
    """

    def __init__(self, target: Tokenizer, source: Tokenizer | None = None) -> None:
        for side, tokenizer in (("target", target), ("source", source or target)):
            if tokenizer.kind != "word":
                raise RegardError(
                    f"Only words can be copied, and the {side} tokenizer is one of '{tokenizer.kind}'. Set "
                    "tokenizer.kind to word on both sides, or copies to false."
                )
        assert target.unk is not None, "word tokenizers have an unknown word"
        self._vocab_size, self._unk = target.vocab_size, target.unk
        self._ids = target.hf.get_vocab() | {EOS: target.unk}  # spelled in a text it is a word, and no end
        self._fold = _choose_fold(target)

    def number_source(self, text: str) -> tuple[Ids, list[str]]:
        """The source's words as ids of the extended vocabulary, and the words behind V, V + 1, ..."""
        unknown: dict[str, int] = {}
        ids = []
        for word in split_words(self._fold(text)):
            known = self._ids.get(word)
            ids.append(unknown.setdefault(word, self._vocab_size + len(unknown)) if known is None else known)
        return np.array(ids, dtype=np.int64), list(unknown)

    def number_target(self, text: str, unknown: Sequence[str]) -> Ids:
        """The target's ids; a word that the vocabulary lacks is the one of its source, if it is there, else <unk>."""
        ids = {word: self._vocab_size + k for k, word in enumerate(unknown)} | self._ids
        return np.array([ids.get(word, self._unk) for word in split_words(self._fold(text))], dtype=np.int64)


def _choose_fold(tokenizer: Tokenizer) -> Callable[[str], str]:
    normalizer = tokenizer.hf.normalizer
    return str if normalizer is None else normalizer.normalize_str
