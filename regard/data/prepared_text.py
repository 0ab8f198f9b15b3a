"""From sources to token streams on disk, once: read, split, learn the tokenizer, encode.

The text is never held whole: it is read again for each of these steps, a megabyte at a time. What is made is kept in
the cache under a key of the content, the way it is split and the tokenizer, so a second call with the same three finds
it. A folder of streams appears in the cache whole or not at all.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from regard.data.cache import Held, cache_root, content_hash, key_of, remove_abandoned, spool_folder
from regard.data.config import DataConfig
from regard.data.pieces import Piece, limited
from regard.data.shards import StreamWriter, open_streams, write_note
from regard.data.source import TextFile, read_pieces, resolve
from regard.data.split import NAMES, TEST, TRAIN, VALID, plan_split
from regard.data.stream import Stream
from regard.data.workers import encode_batches, n_workers_for
from regard.errors import RegardError
from regard.files import remove_folder, write_folder_atomically
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, train_tokenizer
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


def prepare_text(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    n_processes: int | None = None,
) -> PreparedText:
    """Read, split, learn the tokenizer on the training split, encode; a second call finds it all in the cache.

    `progress` is told what is being done, how many bytes of it are done and of how many. `n_processes` is for
    encoding, None: as many as there are cores and work for; it changes the time and nothing else.
    """
    cache = cache or cache_root()
    with spool_folder(cache) as spool:
        text = _Text(data, spool, cache, progress or _silent)
        tokenizer_path = cache / "tokenizers" / f"{key_of(text.key, tokenizer.to_dict())}.json"
        learned = _known_tokenizer(tokenizer, tokenizer_path)
        if learned is None:
            learned = train_tokenizer(tokenizer, text.training_texts(tokenizer), text.told_while_learning(tokenizer))
            learned.save(tokenizer_path)
        return _encoded(text, learned, cache, n_processes)


def encode_text(
    tokenizer: Tokenizer,
    data: DataConfig,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    n_processes: int | None = None,
) -> Stream:
    """All of `data.train` as one stream under a tokenizer that is there already; to score other text, say."""
    cache = cache or cache_root()
    whole = data.replace(valid=None, test=None, p_valid=0.0, p_test=0.0)
    with spool_folder(cache) as spool:
        return _encoded(_Text(whole, spool, cache, progress or _silent), tokenizer, cache, n_processes).train


def open_text(fingerprint: str, cache: Path | None = None) -> PreparedText | None:
    """What an earlier `prepare_text` made, by its fingerprint; None where the cache has it no more.

    This is how a run whose text came from standard input goes on.
    """
    folder = _folder(cache or cache_root(), fingerprint)
    streams = open_streams(folder)
    if streams is None or not (folder / "tokenizer.json").exists():
        return None
    return PreparedText(Tokenizer.load(folder), **streams, fingerprint=fingerprint)


class _Text:
    """The files behind a DataConfig, and their pieces with the split each is in."""

    def __init__(self, data: DataConfig, spool: Path, cache: Path, progress: Progress) -> None:
        self._data, self.tell = data, progress
        self._files: dict[int, list[TextFile]] = {}
        for number, given in ((TRAIN, data.train), (VALID, data.valid), (TEST, data.test)):
            if given is not None:
                folder = spool / NAMES[number]
                folder.mkdir()
                self._files[number] = resolve(given, data, folder, cache)
        self.key = self._key(cache)
        self._split: Callable[[Iterable[Piece]], Iterator[tuple[int, Piece]]] | None = None
        self.n_train_bytes = 0

    def _key(self, cache: Path) -> str:
        hashes = {NAMES[n]: [content_hash(f.path, cache) for f in files] for n, files in self._files.items()}
        _refuse_shared(hashes, self._files)
        data = self._data.to_dict()
        how = {name: data[name] for name in ("document", "max_bytes", "split_seed")}
        fields = {NAMES[n]: [f.reading for f in files] for n, files in self._files.items()}
        return key_of(FORMAT, hashes, fields, how, self._data.part_valid, self._data.part_test)

    def pieces(self) -> Iterator[tuple[int, Piece]]:
        """Every piece with the number of its split: the training source first, then separate ones."""
        if self._split is None:
            self._split, self.n_train_bytes = plan_split(
                self._training_source,
                self._data.part_valid,
                self._data.part_test,
                self._data.split_seed,
                lambda done: self.tell("reading", done, None),
            )
        yield from self._split(self._training_source())
        for number in (VALID, TEST):
            if number in self._files:
                yield from ((number, piece) for piece in read_pieces(self._files[number], self._data.document))

    def training_texts(self, config: TokenizerConfig) -> Iterator[str]:
        """The text a tokenizer may see: all of the training split, or an even part of it where that is much."""
        taken = 0.0
        for number, piece in self.pieces():
            if number != TRAIN:
                continue
            taken += min(1.0, self._bytes_to_learn_from(config) / self._split_bytes())
            if taken >= 1:
                taken -= 1
                yield piece.text

    def told_while_learning(self, config: TokenizerConfig) -> Progress:
        return lambda what, done, _: self.tell(what, done, max(done, self._bytes_to_learn_from(config)))

    def _bytes_to_learn_from(self, config: TokenizerConfig) -> int:
        is_capped = config.max_bytes is not None and config.kind in ("bpe", "wordpiece")
        return min(self._split_bytes(), config.max_bytes or 0) if is_capped else self._split_bytes()

    def _split_bytes(self) -> int:
        """About how many bytes the training split has."""
        return round(self.n_train_bytes * (1 - self._data.part_valid - self._data.part_test))

    def _training_source(self) -> Iterator[Piece]:
        return limited(read_pieces(self._files[TRAIN], self._data.document), self._data.max_bytes)


def _refuse_shared(hashes: dict[str, list[str]], files: dict[int, list[TextFile]]) -> None:
    """Scores on text that was trained on mean nothing."""
    seen: dict[str, tuple[str, str]] = {}
    for number, name in enumerate(NAMES):
        for digest, file in zip(hashes.get(name, []), files.get(number, []), strict=True):
            other, other_file = seen.setdefault(digest, (name, file.name))
            if other != name:
                raise RegardError(
                    f"{other_file} ({other}) and {file.name} ({name}) hold the same text. A score on text that was "
                    f"trained on means nothing: give other text for {name}, or leave it out and a part is set aside."
                )


def _known_tokenizer(config: TokenizerConfig, path: Path) -> Tokenizer | None:
    if config.path is not None:
        return Tokenizer.load(config.path)
    return Tokenizer.load(path) if path.exists() else None


def _encoded(text: _Text, tokenizer: Tokenizer, cache: Path, n_processes: int | None) -> PreparedText:
    fingerprint = key_of(text.key, tokenizer.hash)
    folder = _folder(cache, fingerprint)
    remove_abandoned(folder.parent)
    streams = open_streams(folder)
    # Folders appear whole, so one that is there and cannot be opened, twice, was damaged later.
    if streams is None and folder.exists() and (streams := open_streams(folder)) is None:
        remove_folder(folder)
    if streams is None:
        try:
            write_folder_atomically(folder, partial(_fill, text=text, tokenizer=tokenizer, n_processes=n_processes))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            # Another process encoded the same text meanwhile: its folder holds what ours did.
        streams = open_streams(folder)
    if streams is None:
        raise RegardError(f"{folder} was deleted or damaged just after it was written. Start again.")
    return PreparedText(tokenizer, **streams, fingerprint=fingerprint)


def _fill(folder: Path, text: _Text, tokenizer: Tokenizer, n_processes: int | None) -> None:
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32
    writers = [StreamWriter(folder, name, dtype) for name in NAMES]
    with Held(folder):
        pieces = text.pieces()
        order: list[int] = []  # the split of each batch that was handed out
        batches = _batches(pieces, writers, order, text)
        first = next(batches, [])
        n_workers = n_workers_for(tokenizer, text.n_train_bytes, n_processes)
        for i, ids in enumerate(encode_batches(_with_first(first, batches), tokenizer, n_workers)):
            writers[order[i]].add(ids)
        tokenizer.save(folder / "tokenizer.json")
        write_note(folder, writers)


def _with_first(first: list[Piece], others: Iterator[list[Piece]]) -> Iterator[list[Piece]]:
    yield first
    yield from others


def _batches(
    pieces: Iterator[tuple[int, Piece]], writers: list[StreamWriter], order: list[int], text: _Text
) -> Iterator[list[Piece]]:
    """Pieces of one split at a time, about BATCH_BYTES together."""
    waiting: list[list[Piece]] = [[] for _ in writers]
    sizes, done = [0] * len(writers), 0
    for number, piece in pieces:
        waiting[number].append(piece)
        before = writers[number].n_bytes
        writers[number].count(piece)
        sizes[number] += writers[number].n_bytes - before
        if sizes[number] >= BATCH_BYTES:
            done += sizes[number]
            order.append(number)
            yield waiting[number]
            text.tell("encoding", done, max(done, text.n_train_bytes))
            waiting[number], sizes[number] = [], 0
    for number, left in enumerate(waiting):
        if left:
            order.append(number)
            yield left
    text.tell("encoding", done + sum(sizes), done + sum(sizes))


def _folder(cache: Path, fingerprint: str) -> Path:
    return cache / "encoded" / fingerprint


def _silent(what: str, done: int, total: int | None) -> None:
    """No progress is shown."""
