"""What a language model shows of itself on one passage: a sample, its surprise, what its past is worth, its inside."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from regard.count.ngram import NgramModel
from regard.lens.attention import take_attention
from regard.lens.cells import find_cells
from regard.lens.next_word import rank_next
from regard.lens.trace import TraceableRun
from regard.lens.views import Continuation, Span, Views, WindowLosses
from regard.lens.whole_words import Opened
from regard.mixers.recurrent import Recurrent
from regard.mixers.recurrent_attention import RecurrentAttention
from regard.models.next_token import NextToken
from regard.score.blocks import TestText, between, score_text

T = TypeVar("T")

PASSAGE_CHARS = 460
N_WINDOWS = 48
MAX_CELLS = 5
N_NEXT = 5
EDGES = (0, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MAX_SAMPLE_CHARS = 320
SAMPLING: dict[str, Any] = {"temperature": 0.8, "top_p": 0.95, "seed": 0}


class LanguageModelLike(TraceableRun, Protocol):
    """What is asked of a run of a language model."""

    @property
    def folder(self) -> Path: ...

    @property
    def next_token(self) -> NextToken: ...

    def open_text(self, prefix: str) -> Opened: ...

    def generate(self, prompt: str = "", n: int = 1, **sampling: Any) -> str | list[str]: ...


def look_inside(
    run: LanguageModelLike, test: TestText, passage: str, prompt: str, note: Callable[[str], None]
) -> Views:
    """Sample, next words, surprise, attention and cells. One that cannot be made is told and left out."""

    def attempt(what: str, make: Callable[[], T], otherwise: T) -> T:
        try:
            return make()
        except Exception as error:  # a picture must not cost the hours of training before it
            note(f"{run.folder.name}: no {what} ({type(error).__name__}: {error})")
            return otherwise

    is_recurrent = not isinstance(run.model, NgramModel) and isinstance(run.model.mixer, Recurrent | RecurrentAttention)
    return Views(
        sample=attempt("sample", lambda: sample(run, prompt), ""),
        next_words=attempt("next words", lambda: list_next_words(run, prompt), ()),
        surprise=attempt("surprise", lambda: surprise(run, passage), ()),
        attention=attempt("attention map", lambda: take_attention(run, passage), None),
        cells=attempt("cells", lambda: find_cells(run.model, run.tokenizer, test.text, MAX_CELLS), None)
        if is_recurrent
        else None,
    )


def list_next_words(run: LanguageModelLike, prompt: str) -> tuple[Continuation, ...]:
    """The words that are most probable after the prompt, and their probabilities."""
    ranked = rank_next(run.open_text(prompt), N_NEXT)["words"]
    return tuple(Continuation(word=word, probability=p) for word, p in ranked)


def measure_positions(run: LanguageModelLike, test: TestText) -> WindowLosses:
    """Bits per byte where only the last 0-4, 4-8, ... bytes are known, because reading began there.

    Some stretches of a text are harder than others, which would hide what the past is worth. So what a stretch costs
    from a fresh start is held against what the same bytes cost with all of their past, and the differences are added
    to the bits per byte of the whole text.
    """
    scoring = score_text(run.next_token, run.tokenizer, test)
    n_bytes = float(scoring.ends[-1])
    edges = np.array([e for e in EDGES if e <= max(8, n_bytes / 4)], dtype=np.float64)
    begins = np.concatenate([[0.0], scoring.ends[:-1]])
    wanted = np.linspace(0, max(0.0, n_bytes - edges[-1] - 1), N_WINDOWS)
    rows, documents, document_of_block = [], [], test.document_of_block
    for first in np.unique(np.searchsorted(begins, wanted)).tolist():
        last = int(np.searchsorted(scoring.ends, begins[first] + edges[-1])) + 1
        if last > len(scoring.ids):
            continue
        part, ends = slice(first, last), scoring.ends[first:last] - begins[first]
        fresh = np.where(scoring.is_scored[part], run.next_token.nats(scoring.ids[part]), 0.0)
        extra = between(edges, ends, fresh - scoring.nats[part]) / np.diff(edges)  # nats per byte
        rows.append(tuple(((scoring.nats.sum() / n_bytes + extra) / math.log(2)).tolist()))
        block = int(np.searchsorted(test.borders, begins[first], side="right")) - 1
        documents.append(document_of_block[min(block, len(document_of_block) - 1)])
    middles = (edges[:-1] + edges[1:]) / 2
    return WindowLosses(n_bytes_before=tuple(middles.tolist()), bits_per_byte=tuple(rows), documents=tuple(documents))


def surprise(run: LanguageModelLike, passage: str) -> tuple[Span, ...]:
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


def sample(run: LanguageModelLike, prompt: str) -> str:
    """What the model goes on with, cut to a readable length at the end of a word."""
    text = run.generate(prompt, max_tokens=MAX_SAMPLE_CHARS // 2, **SAMPLING)
    assert isinstance(text, str)
    text = text[len(prompt) :]
    if len(text) <= MAX_SAMPLE_CHARS:
        return text
    part = text[:MAX_SAMPLE_CHARS]
    return part[: max(part.rfind(" "), part.rfind("\n"), MAX_SAMPLE_CHARS // 2)] + " …"


def choose_passage(text: str, n_chars: int = PASSAGE_CHARS) -> str:
    """A stretch to read: prose rather than tables, from the start of a line to the end of a word."""
    if len(text) <= n_chars:
        return text.strip("\n")
    starts = [0] + [m.end() for m in re.finditer(r"\n\s*\n(?=\S)", text) if m.end() + n_chars < len(text)]
    starts = starts if len(starts) > 1 else [0] + [m.end() for m in re.finditer(r"\n(?=\S)", text[:-n_chars])]
    starts = starts[:: max(1, len(starts) // 200)]
    best = max(starts, key=lambda a: _rate_readability(text[a : a + n_chars]))
    part = text[best : best + n_chars]
    return part[: max(part.rfind(" "), part.rfind("\n"), n_chars // 2)].rstrip()


def _rate_readability(part: str) -> float:
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
