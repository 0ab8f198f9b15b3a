"""Texts to token ids, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from regard.data.pair_rows import Rows
from regard.data.pieces import Piece
from regard.data.workers import encode_batches, n_workers_for
from regard.text.encoding import Ids
from regard.text.tokenizer import Tokenizer

BATCH_BYTES = 2**20  # of text, handed to an encoder at a time

Lengths = NDArray[np.int64]


def encoded_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ids, Lengths]:
    """The ids of texts one after the other, and how many each has: at least one, and none of them <eos>.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> encoded_texts(train_tokenizer(TokenizerConfig(kind="byte"), []), ["ab", "c"])
    (array([ 98,  99, 100], dtype=int32), array([2, 1]))
    """
    pieces = [Piece(text, True) for text in texts]
    return split_at_ends(tokenizer, texts, tokenizer.encode_documents(pieces))


def encoded_rows(tokenizer: Tokenizer, rows: Rows, n_processes: int | None) -> Iterator[tuple[Ids, Lengths]]:
    """The ids of UTF-8 rows, about BATCH_BYTES of text at a time, on several cores where that helps."""
    order: list[list[str]] = []  # batches handed out and not back yet

    def batches() -> Iterator[list[Piece]]:
        for texts in text_batches(rows):
            order.append(texts)
            yield [Piece(text, True) for text in texts]

    for ids in encode_batches(batches(), tokenizer, n_workers_for(tokenizer, int(rows.starts[-1]), n_processes)):
        yield split_at_ends(tokenizer, order.pop(0), ids)


def text_batches(rows: Rows) -> Iterator[list[str]]:
    """The texts of UTF-8 rows in order, about BATCH_BYTES at a time."""
    begin = 0
    while begin < len(rows):
        end = int(np.searchsorted(rows.starts, rows.starts[begin] + BATCH_BYTES, side="right")) - 1
        end = min(max(end, begin + 1), len(rows))
        data = rows.flat[rows.starts[begin] : rows.starts[end]].tobytes()
        bounds = (rows.starts[begin : end + 1] - rows.starts[begin]).tolist()
        yield [data[a:b].decode() for a, b in pairwise(bounds)]
        begin = end


def split_at_ends(tokenizer: Tokenizer, texts: Sequence[str], ids: Ids) -> tuple[Ids, Lengths]:
    """`ids` without the <eos> after each text, and how many stood before each."""
    ends = np.flatnonzero(ids == tokenizer.eos)
    lengths = np.diff(ends, prepend=-1) - 1
    if len(ends) == len(texts) and lengths.all():
        return ids[ids != tokenizer.eos], lengths
    # Rare: a text that spells "<eos>", which the word tokenizer reads as the end mark, or one of characters that
    # WordPiece removes. What has no token is an unknown word.
    found = [encoded_text(tokenizer, text) for text in texts]
    return np.fromiter(chain.from_iterable(found), dtype=np.int32), np.array([len(row) for row in found])


def encoded_text(tokenizer: Tokenizer, text: str) -> Ids:
    """The ids of one text that is not empty: at least one, and none of them <eos>, as in `encoded_texts`.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> encoded_text(train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["a b"]), "b <eos> a")
    array([3, 1, 2], dtype=int32)
    """
    unknown = 1 if tokenizer.unk is None else tokenizer.unk
    ids = tokenizer.encode(text)
    return np.where(ids == tokenizer.eos, unknown, ids) if len(ids) else np.array([unknown], dtype=ids.dtype)
