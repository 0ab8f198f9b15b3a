"""From named files to pairs of token ids on disk, once: read, split, learn the vocabularies, encode.

Two folders are kept in the cache. The texts, under a key of the content and how it is split; and their ids, under a key
of the texts and the vocabularies. Each appears whole or not at all, and neither is ever held in memory whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.cache import be_silent, cache_root, find_or_make, key_of, make_kind_folder, open_whole, spool_folder
from regard.data.kept_tokenizer import keep_tokenizer, open_kept_tokenizer
from regard.data.pair_texts import PairTextFiles, PairTexts, open_texts
from regard.data.pairs import Pairs, Side, add_tags, find_tags
from regard.data.pairs_config import PairsConfig
from regard.data.rows import Kind, Rows, RowsWriter, encode_rows, open_rows
from regard.data.split import NAMES, TEST, TRAIN, VALID, Counts
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, choose_part_to_learn_from, take_evenly, train_tokenizer
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer
from regard.untrusted.small_files import read_object

SIDES = ("source", "target")
NOTE = "ids.json"
MAX_NARROW = 2**16  # ids up to here fit into two bytes


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs ready to train on. `fingerprint` stands for their content, how they are split and the vocabularies."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: Pairs
    valid: Pairs
    test: Pairs
    counts: Counts
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
) -> PreparedPairs:
    """Read, split, learn the vocabularies on the training split, encode; a second call finds it all in the cache.

    With no `target_tokenizer` one vocabulary is learned on both sides. `progress` is told what is being done, how many
    bytes of it are done and of how many.
    """
    cache, tell = cache or cache_root(), progress or be_silent
    texts = read_pairs(data, progress=tell, cache=cache)
    if target_tokenizer is None:
        shared = _tokenizer(tokenizer, texts, SIDES, cache, tell)
        return _encode(texts, (shared, shared), cache, tell)
    source = _tokenizer(tokenizer, texts, SIDES[:1], cache, tell)
    target = _tokenizer(target_tokenizer, texts, SIDES[1:], cache, tell)
    return _encode(texts, (source, target), cache, tell)


def encode_pairs(
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    data: PairsConfig,
    *,
    cache: Path | None = None,
) -> PreparedPairs:
    """All of `data.train`, as its split train, under tokenizers that are there already; to score other pairs, say."""
    cache = cache or cache_root()
    whole = data.replace(valid=None, test=None, p_valid=0.0, p_test=0.0)
    # The built-in grammar would hold out more by itself.
    texts = read_pairs(whole, cache=cache, only=("train",))
    return _encode(texts, (source_tokenizer, target_tokenizer), cache, be_silent)


def open_pairs(fingerprint: str, cache: Path | None = None) -> PreparedPairs | None:
    """What an earlier `prepare_pairs` made, by its fingerprint; None where the cache has it no more."""
    cache = cache or cache_root()
    return open_whole(make_kind_folder(cache, "pairs") / fingerprint, lambda folder: _open_ids(folder, cache))


def read_pairs(
    data: PairsConfig, *, progress: Progress | None = None, cache: Path | None = None, only: Sequence[str] = NAMES
) -> PairTexts:
    """The texts of pairs, split; a second call finds them in the cache. `only` these splits are read."""
    cache, tell = cache or cache_root(), progress or be_silent
    with spool_folder(cache) as spool:
        files = PairTextFiles(data, spool, cache, only)
        folder = make_kind_folder(cache, "pair-texts") / files.key
        return find_or_make(folder, files.open, lambda aside: files.write(aside, tell))


def _tokenizer(
    config: TokenizerConfig, texts: PairTexts, sides: tuple[str, ...], cache: Path, tell: Progress
) -> Tokenizer:
    """Learned on the training split of one side or of both. Only what stands before a source can have tags."""
    tags = texts.tags if "source" in sides else ()
    if config.path is not None:
        loaded = Tokenizer.load(_find_vocabulary(config.path, sides))
        find_tags(loaded, tags)
        return loaded
    path = make_kind_folder(cache, "tokenizers") / f"{key_of(texts.key, config.to_dict(), sides)}.json"
    if (kept := open_kept_tokenizer(path)) is not None:
        return kept
    rows: list[Rows] = [getattr(texts, side) for side in sides]
    n_bytes = sum(int(side.lengths[texts.split == TRAIN].sum()) for side in rows)
    part = choose_part_to_learn_from(config, n_bytes)
    learned = train_tokenizer(
        config,
        (side[row].tobytes().decode() for row in take_evenly(texts.rows(TRAIN), part) for side in rows),
        lambda what, done, _: tell(what, done, max(done, round(part * n_bytes))),
    )
    tagged = add_tags(learned, tags)
    keep_tokenizer(tagged, path)
    return tagged


def _find_vocabulary(given: str, sides: tuple[str, ...]) -> str:
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


def _encode(texts: PairTexts, tokenizers: tuple[Tokenizer, Tokenizer], cache: Path, tell: Progress) -> PreparedPairs:
    folder = make_kind_folder(cache, "pairs") / key_of(texts.key, *(tokenizer.hash for tokenizer in tokenizers))
    before_source = np.array([-1, *find_tags(tokenizers[0], texts.tags)])[texts.tag_numbers]

    def fill(aside: Path) -> None:
        done, total = 0, int(texts.source.starts[-1] + texts.target.starts[-1])
        for side, tokenizer in zip(SIDES, tokenizers, strict=True):
            tokenizer.save(aside / f"{side}-tokenizer.json")
            rows: Rows = getattr(texts, side)
            tags = before_source if side == "source" else np.full(len(rows), -1)
            with RowsWriter(aside, side, _kind(tokenizer)) as writer:
                begin = 0
                for ids, lengths in encode_rows(tokenizer, rows, is_source=side == "source"):
                    end = begin + len(lengths)
                    writer.add(*_put_tags_before(ids, lengths, tags[begin:end]))
                    tell("encoding", done + int(rows.starts[end]), total)
                    begin = end
            done += int(rows.starts[-1])
        (aside / NOTE).write_text(json.dumps({"texts": texts.key}), encoding="utf-8")

    return find_or_make(folder, lambda found: _open_ids(found, cache, texts), fill)


def _put_tags_before(ids: Any, lengths: Any, tags: Any) -> tuple[Any, Any]:
    """Rows with a tag's id before each that has one; -1: none."""
    has_one = tags >= 0
    starts = np.cumsum(lengths) - lengths
    return np.insert(ids, starts[has_one], tags[has_one]), lengths + has_one


def _kind(tokenizer: Tokenizer) -> Kind:
    return np.uint16 if tokenizer.vocab_size <= MAX_NARROW else np.uint32


def _open_ids(folder: Path, cache: Path, texts: PairTexts | None = None) -> PreparedPairs | None:
    """The ids in a folder with their texts, or None where one of them is not there or not whole.

    `texts` that are open already may have been removed from the cache.
    """
    try:
        note = read_object(folder / NOTE)
        if texts is None:
            texts = open_whole(make_kind_folder(cache, "pair-texts") / Path(note["texts"]).name, open_texts)
        if texts is None or texts.key != note["texts"]:
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
