"""Text to ids, fast. Every path here gives what `tokenizers` gives for the same tokenizer.json; tests hold them equal.

Hugging Face's `encode` spends its time on offsets and copies that a token stream has no use for. Bytes and characters
are table look-ups, and so are words (see `words`). BPE and WordPiece are encoded a unit at a time (see `units`), and
language repeats itself, so the ids of a unit are computed once, by the library, and remembered. Byte-level BPE goes
through `gigatoken` where that is installed (extra `fast`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.text.units import split_bert_words, split_units, split_words
from regard.text.words import WordEncoder

if TYPE_CHECKING:
    import tokenizers

Ids = NDArray[np.int32]
Pieces = Iterable[tuple[str, bool]]  # text, and whether its document ends here

# Units remembered at a time: about 200 bytes each, and 2^17 cover all but a few in a thousand of a text's units.
MAX_UNITS = 2**17
GLUED_CHARS = 4096


class Encoder(Protocol):
    """Ids of pieces of documents one after the other, with the end mark after each that ends its document."""

    def __call__(self, pieces: Pieces) -> Ids: ...


def choose_encoder(kind: str, hf: tokenizers.Tokenizer, eos: int) -> Encoder:
    """The fastest encoder there is for this tokenizer, whose end mark is `eos`."""
    if kind == "byte":
        return EachPiece(_byte_ids, eos)
    if kind == "char":
        return EachPiece(CharacterTable(hf), eos)
    if kind == "word":
        if "WhitespaceSplit" not in str(hf.pre_tokenizer):
            return _parted_words(hf, eos)
        return WordEncoder(hf.get_vocab(), _lowercase(hf))
    if kind == "wordpiece":
        return UnitEncoder(hf, split_bert_words, eos, glue=" ")
    fast = gigatoken_encode(hf)
    return EachPiece(fast, eos) if fast is not None else UnitEncoder(hf, split_units, eos, glue="")


class EachPiece:
    """Encodes a piece at a time, as fast as text can be read."""

    def __init__(self, encode: Callable[[str], Ids], eos: int) -> None:
        self._encode, self._end = encode, np.array([eos], dtype=np.int32)

    def __call__(self, pieces: Pieces) -> Ids:
        parts: list[Ids] = []
        for text, ends in pieces:
            parts.append(self._encode(text))
            if ends:
                parts.append(self._end)
        return np.concatenate(parts) if parts else self._end[:0]


def _byte_ids(text: str) -> Ids:
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int32) + 1


class CharacterTable:
    """id of each code point; characters without one are written as their UTF-8 bytes, ids byte + 1."""

    def __init__(self, hf: tokenizers.Tokenizer) -> None:
        self._ids = np.full(0x110000, -1, dtype=np.int32)
        for token, i in hf.get_vocab().items():
            if len(token) == 1:
                self._ids[ord(token)] = i

    def __call__(self, text: str) -> Ids:
        points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        ids = self._ids[points]
        unknown = np.flatnonzero(ids < 0)
        if not len(unknown):
            return ids
        parts, begin = [], 0
        for i in unknown.tolist():
            parts += [ids[begin:i], _byte_ids(text[i])]
            begin = i + 1
        return np.concatenate([*parts, ids[begin:]])


def _parted_words(hf: tokenizers.Tokenizer, eos: int) -> Encoder:
    """Words that are parted from their punctuation; a newline is <eos>."""
    encode = UnitEncoder(hf, lambda text: split_words(text.replace("\n", " <eos> ")), eos, glue=" ")
    return lambda pieces: encode((text, ends and not text.endswith("\n")) for text, ends in pieces)


def _lowercase(hf: tokenizers.Tokenizer) -> Callable[[str], str]:
    """The tokenizer's own folding: Python's str.lower differs from it, in the Greek final sigma for one."""
    from tokenizers import normalizers

    if "Lowercase" not in str(hf.normalizer):
        return str
    fold = normalizers.Lowercase().normalize_str
    return lambda text: text.lower() if text.isascii() else fold(text)  # ASCII has one lower case, in 1/100 of the time


class UnitEncoder:
    """Splits text into units and remembers the ids of each; several threads may use one encoder.

    Unit u has ids tokens[starts[u] : starts[u] + lengths[u]].
    """

    def __init__(self, hf: tokenizers.Tokenizer, split: Callable[[str], list[str]], eos: int, glue: str) -> None:
        self._hf, self._split, self._eos, self._glue = hf, split, eos, glue
        self._lock = Lock()  # around what is remembered
        self._forget()

    def _forget(self) -> None:
        self._numbers = _Numbers()
        self._tokens, self._lengths = np.array([self._eos], dtype=np.int32), np.ones(1, dtype=np.int64)
        self._numbers[""] = 0  # no unit is empty: this one stands for the end mark

    def __call__(self, pieces: Pieces) -> Ids:
        units: list[str] = []
        for text, ends in pieces:
            units += self._split(text)
            if ends:
                units.append("")
        with self._lock:
            numbers = np.fromiter(map(self._numbers.__getitem__, units), dtype=np.int64, count=len(units))
            self._learn(self._numbers.take_new())
            tokens, all_lengths = self._tokens, self._lengths  # never changed in place
            if len(self._numbers) > MAX_UNITS:
                self._forget()
        starts = np.cumsum(all_lengths) - all_lengths
        lengths = all_lengths[numbers]
        ends_at = np.cumsum(lengths)
        # position j of the output, in unit i: tokens[starts of unit i + (j - where unit i begins in the output)]
        shift = np.repeat(starts[numbers] - (ends_at - lengths), lengths)
        return tokens[shift + np.arange(len(shift))]

    def _learn(self, units: list[str]) -> None:
        """Ask the library. A call costs it far more than a unit does, so units go there together."""
        if not units:
            return
        texts, starts = _glue(units, self._glue)
        tokens, lengths = [self._tokens], [self._lengths]
        for encoding, begin in zip(self._hf.encode_batch(texts, add_special_tokens=False), starts, strict=True):
            tokens.append(np.array(encoding.ids, dtype=np.int32))
            offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)[:, 0]
            lengths.append(np.bincount(np.searchsorted(begin, offsets, side="right") - 1, minlength=len(begin)))
        self._tokens, self._lengths = np.concatenate(tokens), np.concatenate(lengths)


def _glue(units: list[str], glue: str) -> tuple[list[str], list[list[int]]]:
    """Units joined to texts of some thousand characters, and where in its text each unit begins.

    Where units bring their white space along (no glue), one that has none before it or nothing after it stands alone.
    """
    texts, starts = [""], [list[int]()]
    for unit in units:
        is_blank = not glue and unit.isspace()
        if starts[-1] and (is_blank or (not glue and not unit[0].isspace()) or len(texts[-1]) > GLUED_CHARS):
            texts.append("")
            starts.append([])
        starts[-1].append(len(texts[-1]))
        texts[-1] += unit + glue
        if is_blank:
            texts.append("")
            starts.append([])
    return (texts, starts) if starts[-1] else (texts[:-1], starts[:-1])


class _Numbers(dict[str, int]):
    """Numbers units in the order they are first asked for, and lists the new ones."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[str] = []

    def __missing__(self, unit: str) -> int:
        number = self[unit] = len(self)
        self._new.append(unit)
        return number

    def take_new(self) -> list[str]:
        new, self._new = self._new, []
        return new


# What makes byte-level BPE implementations differ: contractions, runs of white space, digits, marks, odd spaces.
PROBE = (
    "I'll  they'VE \n\n\t x1²³ ½a\u0301 \x1c\x85\xa0\u3000日本語 😀👩‍👧"
    " <eos> <|endoftext|> --\r\n   end \u200b \ufeff  "
)


def gigatoken_encode(hf: tokenizers.Tokenizer) -> Callable[[str], Ids] | None:
    """`gigatoken` (MIT) for this byte-level BPE, or None where it is not installed or does not agree on PROBE."""
    try:
        import gigatoken
    except ImportError:
        return None
    try:
        fast: Any = gigatoken.Tokenizer.from_json(hf.to_str())
        agrees = fast.encode(PROBE).tolist() == hf.encode(PROBE, add_special_tokens=False).ids
    except Exception:  # another version of it, another interface: the slower path is always right
        return None

    lock = Lock()  # its documentation does not say that threads may share it

    def encode(text: str) -> Ids:
        with lock:
            return np.asarray(fast.encode(text)).astype(np.int32)

    return encode if agrees else None
