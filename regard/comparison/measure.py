"""One trained run, measured: nats on every block of the test text, and what it shows of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from regard.comparison.passages import TestText
from regard.comparison.result import PositionPoint, Span
from regard.tasks.language_model import LanguageModelRun as Run

Array = NDArray[np.float64]

N_WINDOWS = 48
EDGES = (0, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MAX_SAMPLE_CHARS = 320
SAMPLING: dict[str, Any] = {"temperature": 0.8, "top_p": 0.95, "seed": 0}


@dataclass(frozen=True)
class Scoring:
    """The whole test text as one stream of tokens: where each ends, in bytes, and what it cost."""

    ids: NDArray[np.int64]
    ends: Array
    nats: Array


def score_text(run: Run, test: TestText) -> Scoring:
    """Every token given all that stands before it, documents one after the other, each ended by <eos>."""
    ids: list[NDArray[np.int64]] = []
    ends: list[Array] = []
    at = 0
    for document in test.documents:
        document_ids, document_ends = _tokens(run, document)
        ids.append(document_ids)
        ends.append(document_ends + at)
        at += len(document.encode())
    stream = np.concatenate(ids)
    return Scoring(stream, np.concatenate(ends), run.next_token.nats(stream))


def block_nats(scoring: Scoring, test: TestText) -> Array:
    """Nats of every block.

    A token that lies across a border gives each side its share by bytes, so that blocks mean the same text for
    tokenizers that cut it differently.
    """
    return between(test.borders, scoring.ends, scoring.nats)


def between(borders: Array, ends: Array, nats: Array) -> Array:
    """Nats from one border to the next, where token i ends at byte `ends[i]` and spreads evenly over its bytes.

    >>> between(np.array([0.0, 3.0, 6.0]), np.array([2.0, 4.0, 6.0]), np.array([2.0, 4.0, 6.0])).tolist()
    [4.0, 8.0]
    """
    places = np.concatenate([[0.0], ends])
    totals = np.concatenate([[0.0], np.cumsum(nats)])
    return cast(Array, np.diff(np.interp(borders, places, totals)))


def by_position(run: Run, scoring: Scoring) -> tuple[PositionPoint, ...]:
    """Bits per byte where only the last 0-4, 4-8, ... bytes are known, because reading began there.

    Some stretches of a text are harder than others, which would hide what the past is worth. So what a stretch costs
    from a fresh start is held against what the same bytes cost with all of their past, and the mean of these
    differences is added to the bits per byte of the whole text.
    """
    n_bytes = float(scoring.ends[-1])
    edges = np.array([e for e in EDGES if e <= max(8, n_bytes / 4)], dtype=np.float64)
    begins = np.concatenate([[0.0], scoring.ends[:-1]])
    wanted = np.linspace(0, max(0.0, n_bytes - edges[-1] - 1), N_WINDOWS)
    extra, n_windows = np.zeros(len(edges) - 1), 0
    for first in np.unique(np.searchsorted(begins, wanted)).tolist():
        last = int(np.searchsorted(scoring.ends, begins[first] + edges[-1])) + 1
        if last > len(scoring.ids):
            continue
        part, ends = slice(first, last), scoring.ends[first:last] - begins[first]
        fresh = run.next_token.nats(scoring.ids[part])
        extra += between(edges, ends, fresh - scoring.nats[part])
        n_windows += 1
    if not n_windows:
        return ()
    nats_per_byte = scoring.nats.sum() / n_bytes + extra / n_windows / np.diff(edges)
    middles = (edges[:-1] + edges[1:]) / 2
    return tuple(
        PositionPoint(n_bytes_before=float(m), bits_per_byte=float(b) / math.log(2))
        for m, b in zip(middles, nats_per_byte, strict=True)
    )


def surprise(run: Run, passage: str) -> tuple[Span, ...]:
    """Every token of the passage with its characters and its bits; tokens inside one character are added up."""
    ids, offsets = run.tokenizer.encode_with_offsets(passage)
    nats = run.next_token.nats(ids)
    spans: list[Span] = []
    at = 0
    for (_, end), cost in zip(offsets, nats.tolist(), strict=True):
        bits = cost / math.log(2)
        if end <= at and spans:  # a further byte of the same character
            last = spans.pop()
            spans.append(Span(start=last.start, end=last.end, bits=last.bits + bits))
        else:
            spans.append(Span(start=at, end=end, bits=bits))
            at = end
    return tuple(spans)


def sample(run: Run, prompt: str) -> str:
    """What the model goes on with, cut to a readable length at the end of a word."""
    text = run.generate(prompt, max_tokens=MAX_SAMPLE_CHARS // 2, **SAMPLING)
    assert isinstance(text, str)
    text = text[len(prompt) :]
    if len(text) <= MAX_SAMPLE_CHARS:
        return text
    part = text[:MAX_SAMPLE_CHARS]
    return part[: max(part.rfind(" "), part.rfind("\n"), MAX_SAMPLE_CHARS // 2)] + " …"


def _tokens(run: Run, text: str) -> tuple[NDArray[np.int64], Array]:
    """Ids of a document, <eos> included, and the byte at which each token ends."""
    ids, offsets = run.tokenizer.encode_with_offsets(text)
    n_bytes = np.concatenate([[0], np.cumsum([len(c.encode()) for c in text])])
    ends = np.maximum.accumulate(n_bytes[[end for _, end in offsets]]) if len(offsets) else np.zeros(0)
    eos = run.tokenizer.eos
    if not len(ids) or ids[-1] != eos:
        ids, ends = np.append(ids, eos), np.append(ends, n_bytes[-1])
    return ids.astype(np.int64), ends.astype(np.float64)
