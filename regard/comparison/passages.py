"""The test text that every contender is measured on: the same characters for all, whatever their tokens are.

Documents are read back from the test stream of a lossless tokenizer, so this is exactly the text that training never
saw. It is cut into blocks of equal length: what the statistics resample and pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.stream import Stream
from regard.errors import RegardError
from regard.text.tokenizer import Tokenizer

MAX_TEST_BYTES = 200_000
MAX_BLOCKS = 100
FEWEST_BLOCK_BYTES = 500
FEWEST_BLOCKS = 10  # with fewer, a sign-flip test cannot say much: 2 of 2^5 patterns are 6%
PASSAGE_CHARS = 460


@dataclass(frozen=True)
class TestText:
    """The documents, and where the blocks end (in bytes of the documents one after the other; the first is 0)."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    documents: tuple[str, ...]
    borders: NDArray[np.float64]

    @property
    def n_bytes(self) -> int:
        return int(self.borders[-1])

    @property
    def block_bytes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in np.diff(self.borders))

    @property
    def text(self) -> str:
        return "\n\n".join(d.strip("\n") for d in self.documents)


def read_test_text(stream: Stream, tokenizer: Tokenizer, max_bytes: int = MAX_TEST_BYTES) -> TestText:
    """The first `max_bytes` of the test documents, cut at a line end where the last one does not fit."""
    assert tokenizer.is_lossless
    documents: list[str] = []
    left = max_bytes
    for document in _documents(stream, tokenizer):
        size = len(document.encode())
        if size > left:
            part = document.encode()[:left].decode("utf-8", "ignore")
            part = part[: part.rfind("\n") + 1] or part[: part.rfind(" ") + 1] or part
            if part:
                documents.append(part)
            break
        if document:
            documents.append(document)
        left -= size
    n_bytes = sum(len(d.encode()) for d in documents)
    n_blocks = max(FEWEST_BLOCKS, min(MAX_BLOCKS, n_bytes // FEWEST_BLOCK_BYTES))
    if n_bytes < 10 * FEWEST_BLOCKS:
        raise RegardError(
            f"The test text has {n_bytes} bytes, too few to compare models on. Give more text, or raise data.p_test."
        )
    return TestText(tuple(documents), np.linspace(0, n_bytes, n_blocks + 1).round())


def _documents(stream: Stream, tokenizer: Tokenizer) -> Iterator[str]:
    at, held = 0, np.zeros(0, dtype=np.int64)
    while at < len(stream):
        held = np.concatenate([held, stream[at : at + 65_536]])
        at += 65_536
        ends = np.flatnonzero(held == tokenizer.eos)
        start = 0
        for end in ends.tolist():
            yield tokenizer.decode(held[start:end])
            start = end + 1
        held = held[start:]
    if len(held):
        yield tokenizer.decode(held)


def choose_passage(text: str, n_chars: int = PASSAGE_CHARS) -> str:
    """A stretch to read: prose rather than tables, from the start of a line to the end of a word."""
    if len(text) <= n_chars:
        return text.strip("\n")
    starts = [0] + [m.end() for m in re.finditer(r"\n\s*\n(?=\S)", text) if m.end() + n_chars < len(text)]
    starts = starts if len(starts) > 1 else [0] + [m.end() for m in re.finditer(r"\n(?=\S)", text[:-n_chars])]
    starts = starts[:: max(1, len(starts) // 200)]
    best = max(starts, key=lambda a: _readable(text[a : a + n_chars]))
    part = text[best : best + n_chars]
    return part[: max(part.rfind(" "), part.rfind("\n"), n_chars // 2)].rstrip()


def _readable(part: str) -> float:
    """High where there are words of many kinds, some punctuation and few blank stretches."""
    words = re.findall(r"[^\W\d_]+", part)
    letters = sum(map(len, words)) / max(1, len(part))
    is_lively = '"' in part or "(" in part
    return len({w.lower() for w in words}) / 60 + min(letters, 0.75) + 0.2 * is_lively - 0.1 * part.count("\n\n")


def choose_prompt(passage: str, n_words: int = 4) -> str:
    """The first words of the first line of the passage that has more than so many; else of the passage."""
    lines = [line.split() for line in passage.split("\n")]
    words = next((line for line in lines if len(line) > n_words), passage.split())
    return " ".join(words[:n_words])
