"""A test text in blocks: the same characters for every language model, whatever its tokens are.

Blocks have equal length in bytes; they are what the statistics resample and pair. A token that lies across a border
gives each side its share by bytes, so that blocks mean the same text for tokenizers that cut it differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from regard.data.stream import Stream
from regard.errors import RegardError
from regard.models.next_token import NextToken
from regard.text.tokenizer import Tokenizer

Array = NDArray[np.float64]

MAX_TEST_BYTES = 200_000
MAX_BLOCKS = 100
FEWEST_BLOCK_BYTES = 500
FEWEST_BLOCKS = 10  # with fewer, a sign-flip test cannot say much: 2 of 2^5 patterns are 6%


@dataclass(frozen=True)
class TestText:
    """The documents, and where the blocks end (in bytes of the documents one after the other; the first is 0)."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    documents: tuple[str, ...]
    borders: Array

    @property
    def n_bytes(self) -> int:
        return int(self.borders[-1])

    @property
    def block_bytes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in np.diff(self.borders))

    @property
    def text(self) -> str:
        return "\n\n".join(d.strip("\n") for d in self.documents)


def cut_into_blocks(documents: Iterable[str], max_bytes: int = MAX_TEST_BYTES) -> TestText:
    """The first `max_bytes` of the documents, cut at a line end where the last one does not fit."""
    chosen: list[str] = []
    left = max_bytes
    for document in documents:
        size = len(document.encode())
        if size > left:
            part = document.encode()[:left].decode("utf-8", "ignore")
            part = part[: part.rfind("\n") + 1] or part[: part.rfind(" ") + 1] or part
            if part:
                chosen.append(part)
            break
        if document:
            chosen.append(document)
        left -= size
    n_bytes = sum(len(d.encode()) for d in chosen)
    n_blocks = max(FEWEST_BLOCKS, min(MAX_BLOCKS, n_bytes // FEWEST_BLOCK_BYTES))
    if n_bytes < 10 * FEWEST_BLOCKS:
        raise RegardError(
            f"The test text has {n_bytes} bytes, too few to compare models on. Give more text, or raise data.p_test."
        )
    return TestText(tuple(chosen), np.linspace(0, n_bytes, n_blocks + 1).round())


def documents_of(stream: Stream, tokenizer: Tokenizer) -> Iterator[str]:
    """The documents that a lossless tokenizer encoded, read back."""
    assert tokenizer.is_lossless
    at, held = 0, np.zeros(0, dtype=np.int64)
    while at < len(stream):
        held = np.concatenate([held, stream[at : at + 65_536]])
        at += 65_536
        start = 0
        for end in np.flatnonzero(held == tokenizer.eos).tolist():
            yield tokenizer.decode(held[start:end])
            start = end + 1
        held = held[start:]
    if len(held):
        yield tokenizer.decode(held)


@dataclass(frozen=True)
class Scoring:
    """A test text as one stream of tokens: where each ends, in bytes, and what it cost."""

    ids: NDArray[np.int64]
    ends: Array
    nats: Array


def score_text(model: NextToken, tokenizer: Tokenizer, test: TestText) -> Scoring:
    """Every token given all that stands before it, documents one after the other, each ended by <eos>."""
    ids: list[NDArray[np.int64]] = []
    ends: list[Array] = []
    at = 0
    for document in test.documents:
        document_ids, document_ends = _tokens(tokenizer, document)
        ids.append(document_ids)
        ends.append(document_ends + at)
        at += len(document.encode())
    stream = np.concatenate(ids)
    return Scoring(stream, np.concatenate(ends), model.nats(stream))


def add_up_blocks(scoring: Scoring, test: TestText) -> list[dict[str, float]]:
    """Nats and tokens of every block."""
    nats = between(test.borders, scoring.ends, scoring.nats)
    tokens = between(test.borders, scoring.ends, np.ones(len(scoring.ids)))
    return [{"nats": n, "tokens": t} for n, t in zip(nats.tolist(), tokens.tolist(), strict=True)]


def between(borders: Array, ends: Array, values: Array) -> Array:
    """What lies from one border to the next, where token i ends at byte `ends[i]` and spreads evenly over its bytes.

    >>> between(np.array([0.0, 3.0, 6.0]), np.array([2.0, 4.0, 6.0]), np.array([2.0, 4.0, 6.0])).tolist()
    [4.0, 8.0]
    """
    places = np.concatenate([[0.0], ends])
    totals = np.concatenate([[0.0], np.cumsum(values)])
    return cast(Array, np.diff(np.interp(borders, places, totals)))


def _tokens(tokenizer: Tokenizer, text: str) -> tuple[NDArray[np.int64], Array]:
    """Ids of a document, <eos> included, and the byte at which each token ends."""
    ids, offsets = tokenizer.encode_with_offsets(text)
    n_bytes = np.concatenate([[0], np.cumsum([len(c.encode()) for c in text])])
    ends = np.maximum.accumulate(n_bytes[[end for _, end in offsets]]) if len(offsets) else np.zeros(0)
    if not len(ids) or ids[-1] != tokenizer.eos:
        ids, ends = np.append(ids, tokenizer.eos), np.append(ends, n_bytes[-1])
    return ids.astype(np.int64), ends.astype(np.float64)
