"""Ids back to text, one at a time: what is pushed out is always whole characters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from regard.text.charsmap import SPACE

GLUED = frozenset(".,?!")  # WordPiece text has no space before these, as in Hugging Face's decoder


class StreamDecoder:
    """`push(id)` gives the text that became certain; `flush()` what is left (U+FFFD for a character cut short)."""

    def __init__(
        self,
        kind: str,
        texts: list[str],
        byte_values: list[bytes] | None,
        unprinted: frozenset[int] = frozenset((0,)),
    ) -> None:
        """`unprinted` are the ids that stand for no text; for words, where it is 0, the end of a line."""
        self._kind, self._texts, self._bytes, self._unprinted = kind, texts, byte_values, unprinted
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = True  # of the text or of a line: no space before the next word

    def push(self, token: int) -> str:
        if self._bytes is not None:
            return self._utf8.decode(self._bytes[token])
        return self._push_word(token)

    def flush(self) -> str:
        return self._utf8.decode(b"", final=True)

    def _push_word(self, token: int) -> str:
        if token in self._unprinted:
            is_line_end = self._kind == "word"
            self._at_start = self._at_start or is_line_end
            return "\n" if is_line_end else ""
        text = self._texts[token]
        if self._kind == "unigram":  # words begin with a space, and texts with none
            text = text.replace(SPACE, " ")
            text = text.lstrip() if self._at_start else text
            self._at_start = self._at_start and not text
            return text
        at_start, self._at_start = self._at_start, False
        if self._kind == "wordpiece" and text.startswith("##") and not at_start:
            return text[2:]
        return text if at_start or (self._kind == "wordpiece" and text in GLUED) else " " + text


def byte_values(kind: str, texts: list[str], unprinted: Iterable[int]) -> list[bytes]:
    """The bytes of each token of a lossless vocabulary; those of `unprinted`, the end mark among them, have none."""
    if kind == "char":
        values = [bytes([int(t[3:5], 16)]) if re.fullmatch("<0x[0-9A-F]{2}>", t) else t.encode() for t in texts]
    else:
        byte_of = {char: byte for byte, char in enumerate(byte_characters())}
        # What is not written in these characters is a mark that somebody added: it stands for itself.
        values = [bytes(map(byte_of.__getitem__, t)) if byte_of.keys() >= set(t) else t.encode() for t in texts]
    for mark in unprinted:
        values[mark] = b""
    return values


def byte_characters() -> list[str]:
    """The printable character that byte-level BPE writes for each byte (Radford et al. 2019).

    Bytes that print as themselves keep their character; the others get U+0100, U+0101, ...
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]
