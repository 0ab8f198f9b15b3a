"""The texts of pairs on disk: read once, checked, and each pair put into its split by its source, or by both texts."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.cache import content_hash, key_of, refuse_shared
from regard.data.pair_source import PairFiles, PairReader, resolve_pairs
from regard.data.pairs import TextPair
from regard.data.pairs_config import PairsConfig
from regard.data.reading import UTF8
from regard.data.rows import Rows, RowsWriter, open_rows
from regard.data.split import NAMES, TEST, TRAIN, VALID, Counts, groups_by_text, hash_key, split_documents
from regard.errors import RegardError
from regard.text.learning import Progress
from regard.untrusted.small_files import read_object

FORMAT = 1  # another number: what older versions wrote is not found any more
NOTE = "pairs.json"
WORD_TAGS = "word_tags"
BATCH = 2000  # pairs written at a time
MAX_TAGS = 255


@dataclass(frozen=True)
class PairTexts:
    """Both sides of all pairs as UTF-8, the split of each pair and the number of its tag (0: none)."""

    key: str
    source: Rows
    target: Rows
    split: NDArray[np.uint8]
    tag_numbers: NDArray[np.uint8]
    tags: tuple[str, ...]
    counts: Counts
    word_tags: Rows | None = None
    """Of trees with slots for words: the tags of the words."""

    def rows(self, split: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.split == split)


class PairTextFiles:
    """The files behind a PairsConfig; `key` stands for their content and how they are read and split."""

    def __init__(self, data: PairsConfig, spool: Path, cache: Path, only: Sequence[str] = NAMES) -> None:
        """`only` these splits are looked at, of those that `data` names."""
        self._data = data
        self._parts: dict[int, list[PairFiles]] = {}
        for name in only:
            number = NAMES.index(name)
            folder = spool / name
            folder.mkdir()
            if parts := resolve_pairs(data, name, folder, cache):
                self._parts[number] = parts
        self.tags = tuple(sorted({p.tag for parts in self._parts.values() for p in parts if p.tag is not None}))
        if len(self.tags) > MAX_TAGS:
            raise RegardError(f"{len(self.tags)} different tags are given, and at most {MAX_TAGS} can be told apart.")
        hashes = {
            NAMES[n]: [[content_hash(f.path, cache) for f in part.files] for part in parts]
            for n, parts in self._parts.items()
        }
        named = {
            NAMES[n]: [(part.files[0].name, tuple(both)) for part, both in zip(parts, hashes[NAMES[n]], strict=True)]
            for n, parts in self._parts.items()
        }
        refuse_shared(named, "pairs")
        how = {NAMES[n]: [[*self._form(part), part.tag] for part in parts] for n, parts in self._parts.items()}
        names = ("source_field", "target_field", "is_reversed", "max_pairs", "skips_bad", "split_seed")
        settings = {name: value for name, value in data.to_dict().items() if name in names}
        settings |= {} if data.encoding == UTF8 else {"encoding": data.encoding}
        # Trees are nobody's sources, and one without its words may be many sentences'.
        is_cut = bool(data.part_valid or data.part_test)
        self._goes_by_both = is_cut and len(data.parts("train")) > 1 and not data.has_trees
        both = ["split by both texts"] if self._goes_by_both else []  # no other key changes
        self.key = key_of(FORMAT, hashes, how, settings, data.part_valid, data.part_test, *both)

    def _form(self, part: PairFiles) -> tuple[str, ...]:
        """How a part is read; what is only for trees or tables changes no key of others."""
        if part.table is not None and not part.table.is_plain:
            return part.form, *map(str, asdict(part.table).values())
        if part.form != "trees":
            return (part.form,)
        # What was read around broken trees before they cost no others is not found any more.
        return ("trees", self._data.tree_words, *(["only broken ones are lost"] if self._data.skips_bad else []))

    def write(self, folder: Path, tell: Progress) -> None:
        """Read all, and write texts, splits and tags with a note of what there is."""
        reader, n_bytes, seed = PairReader(self._data), 0, self._data.split_seed
        keys, target_keys = array("Q"), array("Q")
        splits, tags = bytearray(), bytearray()
        names = ("source", "target", *([WORD_TAGS] if self._data.has_slots else []))
        with ExitStack() as files:
            writers = {name: files.enter_context(RowsWriter(folder, name, np.uint8)) for name in names}
            found = self._pairs(reader)
            while batch := list(islice(found, BATCH)):
                for name, writer in writers.items():
                    n_bytes += _write_texts(writer, [getattr(pair, name) for _, _, pair in batch])
                splits.extend(number for number, _, _ in batch)
                tags.extend(tag for _, tag, _ in batch)
                keys.extend(hash_key(pair.source.encode(), seed) for _, _, pair in batch)
                if self._goes_by_both:
                    target_keys.extend(hash_key(pair.target.encode(), seed) for _, _, pair in batch)
                tell("reading", n_bytes, None)
        split = np.frombuffer(splits, dtype=np.uint8).copy()
        all_keys, n_train = np.frombuffer(keys, dtype=np.uint64), int(np.count_nonzero(split == TRAIN))
        split_keys = all_keys[:n_train]
        if self._goes_by_both:
            split_keys = groups_by_text(split_keys, np.frombuffer(target_keys, dtype=np.uint64)[:n_train])
        split[:n_train] = self._split(split_keys)
        np.save(folder / "tags.npy", np.frombuffer(tags, dtype=np.uint8), allow_pickle=False)
        np.save(folder / "split.npy", split, allow_pickle=False)
        sizes = np.bincount(split, minlength=len(NAMES)).tolist()
        for number, parts in self._parts.items():
            if not sizes[number]:
                raise self._none_left(parts[0].files[0].name, number, n_train)
        is_seen = np.isin(all_keys, all_keys[split == TRAIN])
        seen = {NAMES[n]: int(np.count_nonzero(is_seen[split == n])) for n in (VALID, TEST)}
        counts = {f"n_{name}": n for name, n in zip(NAMES, sizes, strict=True)}
        counts |= {"skipped": dict(reader.skipped), "seen": {name: n for name, n in seen.items() if n}}
        note = {"counts": counts, "tags": list(self.tags)}
        (folder / NOTE).write_text(json.dumps(note, ensure_ascii=False), encoding="utf-8")

    def _none_left(self, name: str, number: int, n_train: int) -> RegardError:
        if number != TRAIN or not n_train:
            return RegardError(f"There is no pair in {name} ({NAMES[number]}). Give some.")
        parts = {"validation (p_valid {:g})": self._data.part_valid, "test (p_test {:g})": self._data.part_test}
        taken = " and ".join(f"to {what.format(part)}" for what, part in parts.items() if part)
        there_are = "There is 1 pair" if n_train == 1 else f"There are {n_train:,} pairs"
        return RegardError(
            f"{there_are} in {name}, and none is left to train on: at least one goes {taken}. Give more pairs, "
            "separate files, or set p_valid and p_test to 0."
        )

    def open(self, folder: Path) -> PairTexts | None:
        """What `write` wrote; None where it is not all there."""
        found = open_texts(folder)
        return None if found is not None and self._data.has_slots and found.word_tags is None else found

    def _pairs(self, reader: PairReader) -> Iterator[tuple[int, int, TextPair]]:
        """Split, number of the tag, and texts of every pair: those of train first."""
        for number, parts in sorted(self._parts.items()):
            found = ((number, self._tag_number(part), pair) for part in parts for pair in reader.pairs(part))
            yield from islice(found, self._data.max_pairs if number == TRAIN else None)

    def _tag_number(self, part: PairFiles) -> int:
        return 0 if part.tag is None else 1 + self.tags.index(part.tag)

    def _split(self, keys: NDArray[np.uint64]) -> NDArray[np.uint8]:
        p_valid, p_test = self._data.part_valid, self._data.part_test
        if not len(keys):
            return np.zeros(0, dtype=np.uint8)
        try:
            return split_documents(keys, p_valid, p_test)
        except RegardError:
            n_keys = len(np.unique(keys))
            sources = "one and the same source" if n_keys == 1 else f"{n_keys:,} different sources"
            pairs = "1 pair is" if len(keys) == 1 else f"{len(keys):,} pairs with {sources} are"
            why = "pairs with equal sources stay together"
            if self._goes_by_both:
                pairs = f"{len(keys):,} pairs in {n_keys:,} group{'s' * (n_keys != 1)} are"
                why = "pairs of several parts that share a text, as source or as target, stay together"
            raise RegardError(
                f"{pairs} too few to set some apart for validation (p_valid {p_valid:g}) and test (p_test {p_test:g}): "
                f"{why}. Give more pairs, separate files, or set p_valid and p_test to 0."
            ) from None


def open_texts(folder: Path) -> PairTexts | None:
    """The texts in a folder, or None where it is not there or not whole."""
    try:
        note = read_object(folder / NOTE)
        source, target = (open_rows(folder, side, np.uint8) for side in ("source", "target"))
        split, tags = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("split", "tags"))
        word_tags = open_rows(folder, WORD_TAGS, np.uint8) if (folder / f"{WORD_TAGS}.npy").exists() else None
        columns = (source, target, split, tags, *([] if word_tags is None else [word_tags]))
        if len({len(column) for column in columns}) > 1:
            return None
        known = tuple(note["tags"]), Counts("pairs", **note["counts"])
        return PairTexts(folder.name, source, target, split, tags, *known, word_tags)
    except (OSError, ValueError, KeyError, TypeError, RegardError):
        return None


def _write_texts(writer: RowsWriter, texts: list[str]) -> int:
    """Some more rows; returns their bytes."""
    utf8 = [text.encode() for text in texts]
    data = b"".join(utf8)
    writer.add(np.frombuffer(data, dtype=np.uint8), np.array([len(text) for text in utf8], dtype=np.int64))
    return len(data)
