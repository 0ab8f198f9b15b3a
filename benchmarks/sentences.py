"""Plain text, one sentence a line, words between white space: what KenLM's tools read, without a tokenizer."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from regard.count.arpa import EOS_NAME, UNK_NAME
from regard.count.counts import EOS

UNK = 1
_END = "\n"  # stands for the end of a sentence where words are looked up; no word can be it


def number_words(lines: Iterable[str]) -> tuple[npt.NDArray[np.int32], list[str]]:
    """The stream of ids of the lines, each ended by 0, and the word of each id, in the order they were first seen.

    Id 1 is `<unk>`, as it may stand in the text; any other word gets an id of its own.

    >>> ids, words = number_words(["a rose is", "a rose"])
    >>> ids.tolist(), words
    ([2, 3, 4, 0, 2, 3, 0], ['</s>', '<unk>', 'a', 'rose', 'is'])
    """
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__
    index |= {_END: EOS, UNK_NAME: UNK}
    ids = _stream(lines, index.__getitem__)
    return ids, [EOS_NAME, *list(index)[1:]]


def find_words(lines: Iterable[str], words: Sequence[str], unk: int = UNK) -> npt.NDArray[np.int32]:
    """The stream of ids of the lines, by words that are numbered already; any other word becomes `unk`.

    >>> find_words(["a daisy"], ["</s>", "<unk>", "a", "rose"]).tolist()
    [2, 1, 0]
    """
    index = defaultdict(lambda: unk, zip(words[1:], range(1, len(words)), strict=True))
    return _stream(lines, index.__getitem__)


def _stream(lines: Iterable[str], id_of: Callable[[str], int]) -> npt.NDArray[np.int32]:
    ids = array("i")
    for line in lines:
        ids.extend(map(id_of, line.split()))
        ids.append(EOS)
    return np.frombuffer(ids, np.int32) if ids else np.zeros(0, np.int32)
