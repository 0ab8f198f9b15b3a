"""Pairs: texts and the token ids of both their sides, on disk, by number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.rows import Rows, encode_lines
from regard.errors import RegardError, nearest
from regard.text.tokenizer import Tokenizer

Ids = NDArray[np.int64]


class TextPair(NamedTuple):
    """Both sides of a pair; of a tree with slots for words, also the tag of every word, with spaces between them."""

    source: str
    target: str
    word_tags: str = ""


class MaxLengths(NamedTuple):
    """Tokens that each side of a pair may have, its <eos> not counted; None: any number."""

    source: int | None = None
    target: int | None = None

    def within(self, limit: int | None) -> MaxLengths:
        """These limits, with neither side above `limit`.

        >>> MaxLengths(24, None).within(12), MaxLengths(24, 23).within(None)
        (MaxLengths(source=12, target=12), MaxLengths(source=24, target=23))
        """
        sides = ([n for n in (side, limit) if n is not None] for side in self)
        return MaxLengths(*(min(known, default=None) for known in sides))


ANY_LENGTH = MaxLengths()


@dataclass(frozen=True)
class Side:
    """One side of all pairs: UTF-8 texts, and their ids under the tokenizer of that side."""

    texts: Rows
    ids: Rows
    tokenizer: Tokenizer

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: Tokenizer, is_source: bool = False) -> Side:
        """A side held in memory."""
        flat, lengths = encode_lines(tokenizer, texts, is_source)
        ids = Rows(flat, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
        return cls(Rows.of([np.frombuffer(text.encode(), dtype=np.uint8) for text in texts], np.uint8), ids, tokenizer)


@dataclass(frozen=True)
class Pairs:
    """The pairs of one split: `rows` says which of the pairs on disk are in it.

    No <eos> is in the ids: the target is read as <eos> y_1 .. y_n and predicts y_1 .. y_n <eos>, which batches add.
    (A tokenizer of Marian's has <pad> for the first of these, and its sources end with its </s>.)
    Where a pair has a tag, its source ids begin with the tag's; its source text does not.
    """

    source: Side
    target: Side
    rows: Ids
    tag_numbers: NDArray[Any]  # of every pair on disk: 0 for no tag, else 1 + its number among the tags
    tags: tuple[str, ...] = ()
    word_tags: Rows | None = None
    """Of every pair on disk: the tags of a tree's words, where its target has slots for them."""

    @classmethod
    def of(cls, texts: Sequence[tuple[str, str]], source: Tokenizer, target: Tokenizer | None = None) -> Pairs:
        """Pairs held in memory, with no tags."""
        sources = Side.of([s for s, _ in texts], source, is_source=True)
        targets = Side.of([t for _, t in texts], target or source)
        return cls(sources, targets, np.arange(len(texts)), np.zeros(len(texts), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.rows)

    def source_ids(self, i: int) -> Ids:
        return self.source.ids[self.rows[i]].astype(np.int64)

    def target_ids(self, i: int) -> Ids:
        return self.target.ids[self.rows[i]].astype(np.int64)

    def source_text(self, i: int) -> str:
        return self.source.texts[self.rows[i]].tobytes().decode()

    def target_text(self, i: int) -> str:
        return self.target.texts[self.rows[i]].tobytes().decode()

    def tag(self, i: int) -> str | None:
        number = int(self.tag_numbers[self.rows[i]])
        return self.tags[number - 1] if number else None

    def tags_of_words(self, i: int) -> list[str] | None:
        """The parts of speech of a source's words; None where they are in the target, or there are none."""
        return None if self.word_tags is None else self.word_tags[self.rows[i]].tobytes().decode().split()

    @cached_property
    def source_lengths(self) -> Ids:
        """Tokens of each source, its tag included."""
        return self.source.ids.lengths[self.rows]

    @cached_property
    def target_lengths(self) -> Ids:
        """Tokens of each target, without the <eos> that is predicted after them."""
        return self.target.ids.lengths[self.rows]

    @cached_property
    def n_bytes(self) -> int:
        """UTF-8 bytes of the targets."""
        return int(self.target.texts.lengths[self.rows].sum())

    @cached_property
    def n_words(self) -> int:
        """White-space separated words of the targets and their line ends, as `Stream.n_words` counts them."""
        return sum(len(self.target.texts[row].tobytes().split()) + 1 for row in self.rows)

    def take_evenly(self, n: int) -> Pairs:
        """n of these pairs, evenly from the first to the last, or all where there are no more.

        Files are often sorted: the first sentences of Tatoeba are its shortest, and score 5 BLEU above all of them.
        """
        rows = self.rows[np.arange(n) * len(self) // n] if n < len(self) else self.rows
        return replace(self, rows=rows)

    def select_fitting(self, max_lengths: MaxLengths) -> Pairs:
        """Those that are not too long; all of them where none is."""
        fits = np.ones(len(self), dtype=bool)
        for limit, lengths in zip(max_lengths, (self.source_lengths, self.target_lengths), strict=True):
            if limit is not None:
                fits &= lengths <= limit
        return self if fits.all() else self.select(fits)

    def select_tagged(self, tag: str) -> Pairs:
        """Those that have this tag."""
        number = 1 + self.tags.index(tag) if tag in self.tags else -1
        return self.select(self.tag_numbers[self.rows] == number)

    def select(self, chosen: NDArray[Any]) -> Pairs:
        """Some of these pairs: their numbers, or True for each that is wanted."""
        return replace(self, rows=self.rows[chosen])


def add_tags(tokenizer: Tokenizer, tags: Sequence[str]) -> Tokenizer:
    """The tokenizer with an entry for each tag that it lacks, after all others; texts are encoded as before.

    A tag such as <2de> stands before a source and says what is wanted (Johnson et al. 2017: one model for many
    languages).
    """
    missing = [tag for tag in tags if tokenizer.id_of(tag) is None]
    if not missing:
        return tokenizer
    parsed = json.loads(tokenizer.json)
    vocab = parsed["model"]["vocab"]
    vocab |= {tag: tokenizer.vocab_size + i for i, tag in enumerate(missing)}
    return Tokenizer.from_json(json.dumps(parsed, ensure_ascii=False), "the vocabulary with tags")


def find_tags(tokenizer: Tokenizer, tags: Sequence[str]) -> list[int]:
    """The id of each tag; an error names the first that the vocabulary does not have."""
    found = []
    for tag in tags:
        if (number := tokenizer.id_of(tag)) is None:
            known = [entry for entry in tokenizer.hf.get_vocab() if entry.startswith("<") and entry.endswith(">")]
            shown = ", ".join(sorted(known)[:20]) or "none"
            raise RegardError(
                f"The tag {tag} is not in the vocabulary.{nearest(tag, known)} Its entries in angle brackets: {shown}. "
                "Use one of these, or learn a vocabulary on pairs that have this tag."
            )
        found.append(number)
    return found
