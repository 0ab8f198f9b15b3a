"""From sources to token streams on disk, once: read, split, learn the tokenizer, encode.

The text is never held whole: it is read again for each of these steps, a megabyte at a time. What is made is kept in
the cache under a key of the content, the way it is split and the tokenizer, so a second call with the same three finds
it. A folder of streams appears in the cache whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from regard.data.cache import (
    be_silent,
    cache_root,
    content_hash,
    find_or_make,
    key_of,
    make_kind_folder,
    open_whole,
    refuse_shared,
    spool_folder,
)
from regard.data.config import DataConfig
from regard.data.documents import choose_document, read_boundaries, read_pieces
from regard.data.kept_tokenizer import keep_tokenizer, open_kept_tokenizer
from regard.data.pieces import Piece, limit_bytes
from regard.data.source import TextFile, resolve
from regard.data.split import NAMES, TEST, TRAIN, VALID, Counts, SplitPlan, plan_split
from regard.data.stream import Stream, StreamWriter, open_streams, read_n_stretches, write_note
from regard.data.workers import count_workers, encode_batches
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, choose_part_to_learn_from, take_evenly, train_tokenizer
from regard.text.tokenizer import Tokenizer

FORMAT = 1  # another number: what older versions encoded is not found any more
BATCH_BYTES = 2**20  # of text, handed to an encoder at a time


@dataclass(frozen=True)
class PreparedText:
    """A text ready to train on. `fingerprint` stands for its content, how it is split and the tokenizer."""

    tokenizer: Tokenizer
    train: Stream
    valid: Stream
    test: Stream
    fingerprint: str
    document: str | None = None
    """What a document is, where `data.document` left it open; None: not known any more."""
    notes: tuple[str, ...] = ()
    """How the text was cut, where `data.document` and `data.split` left it open, as sentences."""

    @property
    def counts(self) -> Counts:
        """How many documents there are."""
        return Counts("documents", self.train.n_documents, self.valid.n_documents, self.test.n_documents)


def prepare_text(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
) -> PreparedText:
    """Read, split, learn the tokenizer on the training split, encode; a second call finds it all in the cache.

    `progress` is told what is being done, how many bytes of it are done and of how many.
    """
    cache = cache or cache_root()
    with spool_folder(cache) as spool:
        text = _Text(data, spool, cache, progress or be_silent)
        path = make_kind_folder(cache, "tokenizers") / f"{key_of(text.key, tokenizer.key())}.json"
        learned = Tokenizer.load(tokenizer.path) if tokenizer.path is not None else open_kept_tokenizer(path)
        if learned is None:
            learned = text.learn(tokenizer)
            keep_tokenizer(learned, path)
        return _encode(text, learned, cache)


def encode_text(
    tokenizer: Tokenizer,
    data: DataConfig,
    *,
    cache: Path | None = None,
) -> Stream:
    """All of `data.train` as one stream under a tokenizer that is there already; to score other text, say."""
    cache = cache or cache_root()
    whole = data.replace(valid=None, test=None, p_valid=0.0, p_test=0.0)
    with spool_folder(cache) as spool:
        return _encode(_Text(whole, spool, cache, be_silent), tokenizer, cache).train


def open_text(fingerprint: str, cache: Path | None = None) -> PreparedText | None:
    """What an earlier `prepare_text` made, by its fingerprint; None where the cache has it no more."""
    folder = _folder(cache or cache_root(), fingerprint)
    streams = open_whole(folder, open_streams)
    try:
        tokenizer = Tokenizer.load(folder / "tokenizer.json") if streams is not None else None
    except RegardError:  # removed meanwhile
        tokenizer = None
    if streams is None or tokenizer is None:
        return None
    train, valid, test = (streams[name] for name in NAMES)
    return PreparedText(tokenizer, train, valid, test, fingerprint)


class _Text:
    """The files behind a DataConfig, and their pieces with the split each is in."""

    def __init__(self, data: DataConfig, spool: Path, cache: Path, progress: Progress) -> None:
        self._data, self.tell = data, progress
        self._files: dict[str, list[TextFile]] = {}
        for name in NAMES:
            if (given := getattr(data, name)) is not None:
                (spool / name).mkdir()
                self._files[name] = resolve(given, data, spool / name, cache)
        self.cut = choose_document(self._files["train"], data, cache)
        self._boundaries = read_boundaries(data)
        self.key = self._key(cache)

    def _key(self, cache: Path) -> str:
        hashes = {name: [content_hash(f.path, cache) for f in files] for name, files in self._files.items()}
        named = {name: zip((f.name for f in files), hashes[name], strict=True) for name, files in self._files.items()}
        refuse_shared(named, "text")
        data = self._data.to_dict()
        how = {name: data[name] for name in ("document", "max_bytes", "split_seed")}
        if self._data.split != "tail":  # which is all that version 0.1.0 did: the key is the one that it made
            how |= {"document": self.cut.document, "split": self._data.split}
        if self._boundaries is not None:
            how["boundaries"] = self._boundaries
        fields = {name: [f.reading for f in files] for name, files in self._files.items()}
        return key_of(FORMAT, hashes, fields, how, self._data.part_valid, self._data.part_test)

    def pieces(self) -> Iterator[tuple[int, Piece]]:
        """Every piece with the number of its split: the training source first, then separate ones."""
        yield from self.plan.assign(self._read_training_source())
        for number in (VALID, TEST):
            if (files := self._files.get(NAMES[number])) is not None:
                yield from ((number, piece) for piece in read_pieces(files, self.cut.document))

    @cached_property
    def plan(self) -> SplitPlan:
        """What is trained on and what is set apart; the first call reads the text."""
        return plan_split(
            self._read_training_source,
            self._data.part_valid,
            self._data.part_test,
            self._data.split_seed,
            takes_tail=self._data.split == "tail",
            tell=lambda done: self.tell("reading", done, None),
        )

    def learn(self, config: TokenizerConfig) -> Tokenizer:
        """A tokenizer of the training split, or of an even part of it where that is much."""
        n_bytes = round(self.plan.n_bytes * (1 - self._data.part_valid - self._data.part_test))
        part = choose_part_to_learn_from(config, n_bytes)
        texts = (piece.text for number, piece in self.pieces() if number == TRAIN)
        return train_tokenizer(
            config,
            take_evenly(texts, part),
            lambda what, done, _: self.tell(what, done, max(done, round(part * n_bytes))),
        )

    def _read_training_source(self) -> Iterator[Piece]:
        pieces = read_pieces(self._files["train"], self.cut.document, self._boundaries)
        return limit_bytes(pieces, self._data.max_bytes)


def _encode(text: _Text, tokenizer: Tokenizer, cache: Path) -> PreparedText:
    fingerprint = key_of(text.key, tokenizer.hash)
    fill = partial(_fill, text=text, tokenizer=tokenizer)
    folder = _folder(cache, fingerprint)
    streams, n_stretches = find_or_make(folder, _open, fill)
    said = text.cut.describe(), _describe_stretches(n_stretches)
    train, valid, test = (streams[name] for name in NAMES)
    notes = tuple(note for note in said if note)
    return PreparedText(tokenizer, train, valid, test, fingerprint, text.cut.document, notes)


def _open(folder: Path) -> tuple[dict[str, Stream], int] | None:
    """The streams of a folder and in how many stretches text was set apart; None where it is not there or not whole.

    All is read at once: the folder may be removed while its files are mapped.
    """
    streams = open_streams(folder)
    try:
        return None if streams is None else (streams, read_n_stretches(folder))
    except RegardError:
        return None


def _describe_stretches(n: int) -> str:
    if not n:
        return ""
    where = f"{n} stretches each, spread over the text" if n > 1 else "a stretch from its middle and one from its end"
    return f"Validation and test text are {where}; data.split: tail takes the end for both."


def _fill(folder: Path, text: _Text, tokenizer: Tokenizer) -> None:
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32
    writers = [StreamWriter(folder, name, dtype) for name in NAMES]
    order: list[int] = []  # the split of each batch that was handed out
    n_workers = count_workers(tokenizer, text.plan.n_bytes)
    for i, ids in enumerate(encode_batches(_batches(text, writers, order), tokenizer, n_workers)):
        writers[order[i]].add(ids)
    tokenizer.save(folder / "tokenizer.json")
    write_note(folder, writers, text.plan.n_stretches)


def _batches(text: _Text, writers: list[StreamWriter], order: list[int]) -> Iterator[list[Piece]]:
    """Pieces of one split at a time, about BATCH_BYTES together."""
    waiting: list[list[Piece]] = [[] for _ in writers]
    sizes, done = [0] * len(writers), 0
    for number, piece in text.pieces():
        waiting[number].append(piece)
        before = writers[number].n_bytes
        writers[number].count(piece)
        sizes[number] += writers[number].n_bytes - before
        if sizes[number] >= BATCH_BYTES:
            done += sizes[number]
            order.append(number)
            yield waiting[number]
            text.tell("encoding", done, max(done, text.plan.n_bytes))
            waiting[number], sizes[number] = [], 0
    for number, left in enumerate(waiting):
        if left:
            order.append(number)
            yield left
    text.tell("encoding", done + sum(sizes), done + sum(sizes))


def _folder(cache: Path, fingerprint: str) -> Path:
    return make_kind_folder(cache, "encoded") / fingerprint
