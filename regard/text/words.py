"""Words to ids: white space separates words, a newline is <eos>, and what the vocabulary lacks is <unk>.

`split_and_look_up` is the rule. A long text is cut and looked up by numpy on its UTF-8 bytes, about six times as fast:
a word of up to 15 bytes and its length fit into two 64-bit numbers, which are the key of a hash table. Longer words are
rare and go through the dict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from regard.text.key_table import ABSENT, Keys, KeyTable
from regard.text.units import SPACES, split_words

Ids = NDArray[np.int32]

EOS_ID, UNK_ID = 0, 1
EOS_WORD = "<eos>"
FEWEST_CHARACTERS = 4096  # in shorter texts numpy's calls cost more than the words
MAX_PACKED = 15  # bytes; the sixteenth holds the length

_WIDE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_ANY_WIDE_SPACE = re.compile(f"[{_WIDE_SPACES}]")
assert re.fullmatch(f"[{SPACES}]+", _WIDE_SPACES), "white space that is no ASCII"
_LOW = np.array([2 ** (8 * min(n, 8)) - 1 for n in range(MAX_PACKED + 1)], np.uint64)
_HIGH = np.array([2 ** (8 * max(n - 8, 0)) - 1 for n in range(MAX_PACKED + 1)], np.uint64)


class WordEncoder:
    """The ids of words, <eos> after each line and each document."""

    def __init__(self, vocab: Mapping[str, int], fold: Callable[[str], str]) -> None:
        self._fold, self._table = fold, _WithDefault(vocab)
        words = {word.encode(): i for word, i in vocab.items()}
        self._long = {word: i for word, i in words.items() if len(word) > MAX_PACKED}
        packed = {word: i for word, i in words.items() if len(word) <= MAX_PACKED} | {b"\n": EOS_ID}
        letters = np.frombuffer(b"".join(word.ljust(16, b"\0") for word in packed), np.uint64).reshape(-1, 2).T.copy()
        n_bytes = np.array([len(word) for word in packed])
        self._keys = KeyTable(_pack(letters[0], letters[1], n_bytes))
        self._ids = np.array([*packed.values(), UNK_ID], np.int32)  # ABSENT, -1, finds the last
        assert ABSENT == -1

    def __call__(self, pieces: Iterable[tuple[str, bool]]) -> Ids:
        # A document that ends with a newline has its <eos> already; and no word goes on from one piece to the next.
        parts = []
        for text, ends in pieces:
            parts += [self._fold(text), "\n" if ends and not text.endswith("\n") else " "]
        text = "".join(parts)
        return self.split_and_look_up(text) if len(text) < FEWEST_CHARACTERS else self.look_up_at_once(text)

    def split_and_look_up(self, text: str) -> Ids:
        """The ids of a text that is folded, word by word."""
        words = split_words(text.replace("\n", f" {EOS_WORD} "))
        return np.fromiter(map(self._table.__getitem__, words), dtype=np.int32, count=len(words))

    def look_up_at_once(self, text: str) -> Ids:
        """The ids of a text that is folded, of all words together."""
        if not text.isascii() and any(space in text for space in _WIDE_SPACES):
            text = _ANY_WIDE_SPACE.sub(" ", text)
        utf8 = text.encode() + bytes(2 * MAX_PACKED)  # sixteen bytes can be read from any place of the text
        first, last = _cut(np.frombuffer(utf8, np.uint8, len(utf8) - 2 * MAX_PACKED))
        n_bytes = last - first + 1
        # Eight bytes from every place of the text: the same memory, read at any distance.
        eight = np.ndarray((len(utf8) - 7,), np.uint64, utf8, strides=(1,))
        ids = self._ids[
            self._keys.find(_pack(eight.take(first), eight.take(first + 8), np.minimum(n_bytes, MAX_PACKED)))
        ]
        for word in np.flatnonzero(n_bytes > MAX_PACKED).tolist():
            ids[word] = self._long.get(utf8[first[word] : last[word] + 1], UNK_ID)
        return ids


def _cut(utf8: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last byte of each word and of each newline, which is a word of its own."""
    is_line_end = utf8 == ord("\n")
    is_inside = utf8 - np.uint8(ord("\t")) > ord("\r") - ord("\t")  # what lies below wraps around to 247 and more
    is_inside &= utf8 != ord(" ")
    is_change = is_inside[1:] != is_inside[:-1]
    begins, ends = is_line_end.copy(), is_line_end
    begins[:1] |= is_inside[:1]
    begins[1:] |= is_change & is_inside[1:]
    ends[:-1] |= is_change & is_inside[:-1]
    ends[-1:] |= is_inside[-1:]
    return np.flatnonzero(begins), np.flatnonzero(ends)


def _pack(low: Keys, high: Keys, n_bytes: NDArray[np.int64]) -> tuple[Keys, Keys]:
    """Two numbers that hold `n_bytes` bytes and how many they are, from sixteen bytes."""
    return low & _LOW.take(n_bytes), high & _HIGH.take(n_bytes) | n_bytes.astype(np.uint64) << np.uint64(56)


class _WithDefault(dict[str, int]):
    def __missing__(self, word: str) -> int:
        return UNK_ID
