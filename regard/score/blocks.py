"""A test text in blocks: the same characters for every language model, whatever its tokens are.

The text is sampled across documents: of each a stretch of equal length, or all of it where it is shorter. Blocks have
about equal length in bytes and never lie across the border of a document; statistics pair blocks and resample
documents. A token that lies across a border gives each side its share by bytes, so that blocks mean the same text for
tokenizers that cut it differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
MAX_BLOCKS = 100  # of one document; several have at least one each
FEWEST_BLOCK_BYTES = 500
FEWEST_BLOCKS = 10  # with fewer, how much the blocks of one document vary is hardly known
STRETCH_BYTES = 1_000  # so many a document at least, on average; where there are more documents, some are chosen
SEED = 0  # of the places where stretches begin


@dataclass(frozen=True)
class TestText:
    """Documents or stretches of them, and where the blocks end (in bytes of all of them together; the first is 0)."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    documents: tuple[str, ...]
    borders: Array
    ends: tuple[bool, ...] = ()
    """Whether each goes to the end of its document, whose <eos> is then scored; empty: all do."""
    n_documents_in_split: int = 0
    n_bytes_in_split: int = 0
    """Of what the text was sampled from."""

    @property
    def n_documents(self) -> int:
        return len(self.documents)

    @property
    def n_bytes(self) -> int:
        return int(self.borders[-1])

    @property
    def block_bytes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in np.diff(self.borders))

    @property
    def document_of_block(self) -> tuple[int, ...]:
        """The number of the document that each block comes from."""
        ends = np.cumsum([len(document.encode()) for document in self.documents])
        return tuple(np.searchsorted(ends, self.borders[:-1], side="right").tolist())

    @property
    def text(self) -> str:
        return "\n\n".join(d.strip("\n") for d in self.documents)

    def describe(self) -> str:
        """How much text it is, in words.

        >>> TestText(("a b\\n", "c\\n"), np.array([0.0, 4.0, 6.0]), (), 40, 9000).describe()
        '6 bytes in 2 blocks from 2 of 40 documents'
        """
        n = self.n_documents
        of = f" of {self.n_documents_in_split:,}" if self.n_documents_in_split > n else ""
        documents = f"{n:,}{of} document{'s' if of or n != 1 else ''}"
        return f"{self.n_bytes:,} bytes in {len(self.borders) - 1:,} blocks from {documents}"


def sample_documents(documents: Iterable[str], max_bytes: int = MAX_TEST_BYTES) -> TestText:
    """A test text from these documents."""
    data = [document.encode() for document in documents]
    return _sample(np.array([len(d) for d in data], dtype=np.int64), lambda i, a, b: data[i][a:b], max_bytes)


def sample_stream(stream: Stream, tokenizer: Tokenizer, max_bytes: int = MAX_TEST_BYTES) -> TestText:
    """A test text from the documents that a lossless tokenizer encoded: the same for every such tokenizer."""
    assert tokenizer.is_lossless
    ids = stream.tokens
    widths = np.array([len(tokenizer.token_bytes(i)) for i in range(tokenizer.vocab_size)], dtype=np.uint16)
    firsts = np.append(0, np.flatnonzero(ids == tokenizer.eos) + 1)
    firsts = firsts[firsts < len(ids)]
    sizes = np.add.reduceat(widths[ids], firsts, dtype=np.int64) if len(ids) else np.zeros(0, dtype=np.int64)
    bounds = np.append(firsts, len(ids))

    def read(i: int, start: int, stop: int) -> bytes:
        own = ids[bounds[i] : bounds[i + 1]]
        ends = np.cumsum(widths[own], dtype=np.int64)
        a = int(np.searchsorted(ends, start, side="right"))  # the token that holds byte `start`
        b = int(np.searchsorted(ends, stop))
        data = b"".join(tokenizer.token_bytes(int(token)) for token in own[a : b + 1])
        begin = int(ends[a - 1]) if a else 0
        return data[start - begin : stop - begin]

    return _sample(sizes, read, max_bytes)


def _sample(sizes: NDArray[np.int64], read: Callable[[int, int, int], bytes], max_bytes: int) -> TestText:
    """Sample from documents of these sizes; `read` gives the bytes of one from a place to another."""
    there = np.flatnonzero(sizes)
    n_bytes = int(sizes.sum())
    if n_bytes > max_bytes:
        n_wanted = int(max_bytes / min(n_bytes / len(there), STRETCH_BYTES))
        if n_wanted < len(there):
            there = there[np.linspace(0, len(there) - 1, max(n_wanted, 1)).round().astype(int)]
    own = sizes[there]
    lengths = _share_bytes(own, max_bytes)
    draws = np.random.default_rng(SEED)
    starts = draws.integers(0, own - lengths, endpoint=True)
    parts: list[str] = []
    is_end: list[bool] = []
    for i, start, length, size in zip(there.tolist(), starts.tolist(), lengths.tolist(), own.tolist(), strict=True):
        if part := _cut_at_lines(read(i, start, start + length), is_begin=start == 0, is_end=start + length == size):
            parts.append(part)
            is_end.append(start + length == size)
    borders = _place_borders([len(part.encode()) for part in parts])
    return TestText(tuple(parts), borders, tuple(is_end), int(np.count_nonzero(sizes)), n_bytes)


def _share_bytes(sizes: NDArray[np.int64], max_bytes: int) -> NDArray[np.int64]:
    """How much is taken of each document: an equal share of `max_bytes`, or all of it where it is shorter.

    By their lengths, a long document would decide alone: of Python's documentation 30 test documents told as much as 6.
    """
    return np.minimum(sizes, max_bytes // max(1, len(sizes)))


def _cut_at_lines(data: bytes, *, is_begin: bool, is_end: bool) -> str:
    """The whole lines of a stretch of a document; else its whole words; else its whole characters."""
    for mark in (b"\n", b" "):
        start = 0 if is_begin else data.find(mark) + 1
        stop = len(data) if is_end else data.rfind(mark) + 1
        if (is_begin or start) and start < stop and 2 * (stop - start) >= len(data):
            return data[start:stop].decode()
    return data.decode("utf-8", "ignore")


def _place_borders(sizes: list[int]) -> Array:
    """Where blocks end: every document has some of about the same length, and at least one."""
    n_bytes = sum(sizes)
    n_blocks = max(FEWEST_BLOCKS, min(MAX_BLOCKS, n_bytes // FEWEST_BLOCK_BYTES))
    if n_bytes < 10 * FEWEST_BLOCKS:
        raise RegardError(
            f"The test text has {n_bytes} bytes, too few to compare models on. Give more text, or raise data.p_test."
        )
    borders, at = [np.zeros(1)], 0
    for size in sizes:
        borders.append(at + np.linspace(0, size, max(1, round(size * n_blocks / n_bytes)) + 1).round()[1:])
        at += size
    return np.concatenate(borders)


@dataclass(frozen=True)
class Scoring:
    """A test text as one stream of tokens: where each ends, in bytes, and what it cost.

    `is_scored` is False of an <eos> that stands between two stretches and not in the text: it costs nothing.
    """

    ids: NDArray[np.int64]
    ends: Array
    nats: Array
    is_scored: NDArray[np.bool_]


def score_text(model: NextToken, tokenizer: Tokenizer, test: TestText) -> Scoring:
    """Every token given all that stands before it, documents one after the other with <eos> between them."""
    ids: list[NDArray[np.int64]] = []
    ends: list[Array] = []
    is_scored: list[NDArray[np.bool_]] = []
    at = 0
    for document, is_end in zip(test.documents, test.ends or (True,) * test.n_documents, strict=True):
        document_ids, document_ends = _tokens(tokenizer, document)
        ids.append(document_ids)
        ends.append(document_ends + at)
        is_in_text = is_end or (tokenizer.kind == "word" and document.endswith("\n"))  # whose line ends are <eos>
        is_scored.append(np.append(np.ones(len(document_ids) - 1, dtype=bool), is_in_text))
        at += len(document.encode())
    stream, counts = np.concatenate(ids), np.concatenate(is_scored)
    return Scoring(stream, np.concatenate(ends), np.where(counts, model.nats(stream), 0.0), counts)


def add_up_blocks(scoring: Scoring, test: TestText) -> list[dict[str, float]]:
    """Nats and tokens of every block."""
    nats = between(test.borders, scoring.ends, scoring.nats)
    tokens = between(test.borders, scoring.ends, scoring.is_scored.astype(np.float64))
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
