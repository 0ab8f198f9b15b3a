"""From named files to pairs of token ids on disk, once: read, split, learn the vocabularies, encode.

Two folders are kept in the cache. The texts, under a key of the content and how it is split; and their ids, under a key
of the texts and the vocabularies. Each appears whole or not at all, and neither is ever held in memory whole.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.data.cache import Held, cache_root, key_of, remove_abandoned, spool_folder
from regard.data.pair_encoding import encoded_rows
from regard.data.pair_rows import Kind, Rows, RowsWriter, open_rows
from regard.data.pair_tags import tag_ids, with_tags
from regard.data.pair_texts import PairCounts, PairTextFiles, PairTexts, open_texts
from regard.data.pairs import Pairs, Side
from regard.data.pairs_config import PairsConfig
from regard.data.split import NAMES, TEST, TRAIN, VALID
from regard.errors import RegardError
from regard.files import remove_folder, write_folder_atomically
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, train_tokenizer
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer

SIDES = ("source", "target")
NOTE = "ids.json"
MAX_NARROW = 2**16  # ids up to here fit into two bytes

Opened = TypeVar("Opened")


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs ready to train on. `fingerprint` stands for their content, how they are split and the vocabularies."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: Pairs
    valid: Pairs
    test: Pairs
    counts: PairCounts
    fingerprint: str

    @property
    def has_one_vocabulary(self) -> bool:
        """Whether an id means the same on both sides, so that embeddings can be shared."""
        return self.source_tokenizer.hash == self.target_tokenizer.hash


def prepare_pairs(
    data: PairsConfig,
    tokenizer: TokenizerConfig,
    target_tokenizer: TokenizerConfig | None = None,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    n_processes: int | None = None,
) -> PreparedPairs:
    """Read, split, learn the vocabularies on the training split, encode; a second call finds it all in the cache.

    With no `target_tokenizer` one vocabulary is learned on both sides. `progress` is told what is being done, how many
    bytes of it are done and of how many. `n_processes` is for encoding, None: as many as there are cores and work for.
    """
    cache, tell = cache or cache_root(), progress or _silent
    texts = read_pairs(data, progress=tell, cache=cache)
    if target_tokenizer is None:
        shared = _tokenizer(tokenizer, texts, SIDES, cache, tell)
        return _encoded(texts, (shared, shared), cache, tell, n_processes)
    source = _tokenizer(tokenizer, texts, SIDES[:1], cache, tell)
    return _encoded(
        texts, (source, _tokenizer(target_tokenizer, texts, SIDES[1:], cache, tell)), cache, tell, n_processes
    )


def encode_pairs(
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    data: PairsConfig,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    n_processes: int | None = None,
) -> PreparedPairs:
    """All of `data.train`, as its split train, under tokenizers that are there already; to score other pairs, say."""
    cache, tell = cache or cache_root(), progress or _silent
    whole = data.replace(valid=None, test=None, p_valid=0.0, p_test=0.0)
    # The built-in grammar would hold out more by itself.
    texts = read_pairs(whole, progress=tell, cache=cache, only=("train",))
    return _encoded(texts, (source_tokenizer, target_tokenizer), cache, tell, n_processes)


def open_pairs(fingerprint: str, cache: Path | None = None) -> PreparedPairs | None:
    """What an earlier `prepare_pairs` made, by its fingerprint; None where the cache has it no more."""
    cache = cache or cache_root()
    return _open_ids(cache / "pairs" / fingerprint, cache)


def read_pairs(
    data: PairsConfig, *, progress: Progress | None = None, cache: Path | None = None, only: Sequence[str] = NAMES
) -> PairTexts:
    """The texts of pairs, split; a second call finds them in the cache. `only` these splits are read."""
    cache, tell = cache or cache_root(), progress or _silent
    with spool_folder(cache) as spool:
        files = PairTextFiles(data, spool, cache, only)
        folder = cache / "pair-texts" / files.key
        return _found_or_made(folder, files.opened, lambda aside: files.write(aside, tell))


def _tokenizer(
    config: TokenizerConfig, texts: PairTexts, sides: tuple[str, ...], cache: Path, tell: Progress
) -> Tokenizer:
    """Learned on the training split of one side or of both. Only what stands before a source can have tags."""
    tags = texts.tags if "source" in sides else ()
    if config.path is not None:
        loaded = Tokenizer.load(_lent(config.path, sides))
        tag_ids(loaded, tags)
        return loaded
    path = cache / "tokenizers" / f"{key_of(texts.key, config.to_dict(), sides)}.json"
    if path.exists():
        return Tokenizer.load(path)
    rows = [getattr(texts, side) for side in sides]
    n_bytes = sum(int(side.lengths[texts.split == TRAIN].sum()) for side in rows)
    is_capped = config.max_bytes is not None and config.kind in ("bpe", "wordpiece")
    part = min(1.0, (config.max_bytes or 0) / n_bytes) if is_capped else 1.0
    learned = train_tokenizer(
        config,
        _training_texts(texts, rows, part),
        lambda what, done, _: tell(what, done, max(done, round(part * n_bytes))),
    )
    tagged = with_tags(learned, tags)
    tagged.save(path)
    return tagged


def _lent(given: str, sides: tuple[str, ...]) -> str:
    """The path of the vocabulary that a run, or what else is given, has for these sides."""
    target = Path(given) / TARGET_TOKENIZER
    if sides == SIDES[:1] or not target.is_file():
        return given
    if sides == SIDES:
        raise RegardError(
            f"tokenizer.path: '{given}' has two vocabularies, one for sources and one for targets. Set "
            f"target_tokenizer.path to {given} too, or tokenizer.path to one of its files, such as "
            f"{Path(given) / 'tokenizer.json'}, for one vocabulary of both sides."
        )
    return str(target)


def _training_texts(texts: PairTexts, sides: list[Rows], part: float) -> Iterator[str]:
    """The texts a vocabulary may be learned from: those of the training split, or an even part of them."""
    taken = 0.0
    for row in texts.rows(TRAIN):
        taken += part
        if taken >= 1:
            taken -= 1
            yield from (side[row].tobytes().decode() for side in sides)


def _encoded(
    texts: PairTexts, tokenizers: tuple[Tokenizer, Tokenizer], cache: Path, tell: Progress, n_processes: int | None
) -> PreparedPairs:
    folder = cache / "pairs" / key_of(texts.key, *(tokenizer.hash for tokenizer in tokenizers))
    before_source = np.array([-1, *tag_ids(tokenizers[0], texts.tags)])[texts.tag_numbers]

    def fill(aside: Path) -> None:
        done, total = 0, int(texts.source.starts[-1] + texts.target.starts[-1])
        for side, tokenizer in zip(SIDES, tokenizers, strict=True):
            tokenizer.save(aside / f"{side}-tokenizer.json")
            rows: Rows = getattr(texts, side)
            tags = before_source if side == "source" else np.full(len(rows), -1)
            with RowsWriter(aside, side, _kind(tokenizer)) as writer:
                begin = 0
                for ids, lengths in encoded_rows(tokenizer, rows, n_processes):
                    end = begin + len(lengths)
                    writer.add(*_with_tags_before(ids, lengths, tags[begin:end]))
                    tell("encoding", done + int(rows.starts[end]), total)
                    begin = end
            done += int(rows.starts[-1])
        (aside / NOTE).write_text(json.dumps({"texts": texts.key}), encoding="utf-8")

    return _found_or_made(folder, lambda found: _open_ids(found, cache), fill)


def _with_tags_before(ids: Any, lengths: Any, tags: Any) -> tuple[Any, Any]:
    """Rows with a tag's id before each that has one; -1: none."""
    has_one = tags >= 0
    starts = np.cumsum(lengths) - lengths
    return np.insert(ids, starts[has_one], tags[has_one]), lengths + has_one


def _kind(tokenizer: Tokenizer) -> Kind:
    return np.uint16 if tokenizer.vocab_size <= MAX_NARROW else np.uint32


def _open_ids(folder: Path, cache: Path) -> PreparedPairs | None:
    """The ids in a folder with their texts, or None where one of them is not there or not whole."""
    try:
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        texts = open_texts(cache / "pair-texts" / note["texts"])
        if texts is None:
            return None
        source, target = (_open_side(folder, side, getattr(texts, side)) for side in SIDES)
    except (OSError, ValueError, KeyError, TypeError, RegardError):
        return None
    if not len(source.ids) == len(target.ids) == len(texts.split):
        return None
    train, valid, test = (
        Pairs(source, target, texts.rows(number), texts.tag_numbers, texts.tags, texts.word_tags)
        for number in (TRAIN, VALID, TEST)
    )
    return PreparedPairs(source.tokenizer, target.tokenizer, train, valid, test, texts.counts, folder.name)


def _open_side(folder: Path, side: str, texts: Rows) -> Side:
    tokenizer = Tokenizer.load(folder / f"{side}-tokenizer.json")
    return Side(texts, open_rows(folder, side, _kind(tokenizer)), tokenizer)


def _found_or_made(folder: Path, opened: Callable[[Path], Opened | None], fill: Callable[[Path], None]) -> Opened:
    """What is in a folder of the cache; it is filled first where it is not there, or was damaged."""
    remove_abandoned(folder.parent)
    found = opened(folder)
    # Folders appear whole, so one that is there and cannot be opened, twice, was damaged later.
    if found is None and folder.exists() and (found := opened(folder)) is None:
        remove_folder(folder)
    if found is None:
        try:
            write_folder_atomically(folder, lambda aside: _fill_held(aside, fill))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            # Another process made the same meanwhile: its folder holds what ours did.
        found = opened(folder)
    if found is None:
        raise RegardError(f"{folder} was deleted or damaged just after it was written. Start again.")
    return found


def _fill_held(folder: Path, fill: Callable[[Path], None]) -> None:
    with Held(folder):
        fill(folder)


def _silent(what: str, done: int, total: int | None) -> None:
    """No progress is shown."""
