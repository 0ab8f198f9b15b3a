"""Training, validation and test text from one source, so that no text is in two of them.

With 20 documents or more, whole documents go one way or the other by a hash of their content and the seed: the same
document always goes the same way, its duplicates go with it, and adding documents moves few of the others. From 3 on,
one document each is set apart for validation and test, if there are some of a sensible size. Else stretches from all
over the text are set apart, cut at line ends, with training text between them; or, where `tail` is asked for, its end.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.data.pieces import Piece
from regard.errors import RegardError

TRAIN, VALID, TEST = 0, 1, 2
NAMES = ("train", "valid", "test")
MIN_DOCUMENTS = 20
STRETCH_BYTES = 1_000  # a stretch that is set apart has about so many at least
MAX_STRETCHES = 8  # training text then falls into 16: too few for <eos> to be what a text begins after (opening.py)

Pieces = Callable[[], Iterable[Piece]]  # opens the source again
Split = Callable[[Iterable[Piece]], Iterator[tuple[int, Piece]]]
Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Counts:
    """How many examples each split has, and how many lines or files were left out, by kind.

    `unit` is what is counted. `inside` is for examples that hold several of something: its name, and how many by split.
    `seen` says how many examples of a split that was given separately have a source that training has too: a score on
    these says little about new text.
    """

    unit: str
    n_train: int
    n_valid: int
    n_test: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    inside: tuple[str, tuple[int, int, int]] | None = None

    def describe(self) -> str:
        """In a sentence without its full stop.

        >>> print(Counts("pairs", 90, 5, 5, {"empty side": 2, "one column": 1}).describe())
        90 pairs for training, 5 for validation, 5 for test; 3 lines left out (empty side: 2, one column: 1)
        """
        sizes = [f"{self.n_train:,} {self.unit}", f"{self.n_valid:,}", f"{self.n_test:,}"]
        uses = ["for training", "for validation", "for test"]
        if self.inside is not None:
            name, numbers = self.inside
            uses = [f"{use} ({n:,} {name})" for use, n in zip(uses, numbers, strict=True)]
        text = ", ".join(f"{size} {use}" for size, use in zip(sizes, uses, strict=True))
        if self.skipped:
            text += f"; {describe_skipped(self.skipped, 'lines' if self.inside is None else '')}"
        if self.seen:
            splits = " and ".join(f"{n:,} of {name}" for name, n in self.seen.items())
            text += f"; the sources of {splits} are in training too"
        return text


def describe_skipped(skipped: Mapping[str, int], unit: str = "lines") -> str:
    """How many were left out, by kind.

    >>> describe_skipped({"too long": 1}), describe_skipped({"empty caption": 2, "unreadable picture": 1}, "")
    ('1 line left out (too long: 1)', '3 left out (empty caption: 2, unreadable picture: 1)')
    """
    kinds = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(skipped.items()))
    n = sum(skipped.values())
    unit = f" {unit.removesuffix('s') if n == 1 else unit}" if unit else ""
    return f"{n:,}{unit} left out ({kinds})"


def hash_key(text: bytes, seed: int) -> int:
    """What a text is ranked by when a part is set aside."""
    return int.from_bytes(_begin_hash(seed, text).digest(), "little")


@dataclass(frozen=True)
class SplitPlan:
    """Tells which split each piece of a text is in. `n_stretches`: so many are set apart for each of the others."""

    assign: Split
    n_bytes: int
    n_stretches: int = 0


def plan_split(
    pieces: Pieces,
    p_valid: float,
    p_test: float,
    seed: int,
    *,
    takes_tail: bool = False,
    tell: Callable[[int], None] | None = None,
) -> SplitPlan:
    """Read the source once or twice, and decide what becomes validation and test text."""
    keys, sizes, n_bytes, begin = array("Q"), array("q"), 0, 0
    digest = _begin_hash(seed)
    for text, ends in pieces():
        data = text.encode()
        digest.update(data)
        n_bytes += len(data)
        if ends:
            keys.append(int.from_bytes(digest.digest(), "little"))
            sizes.append(n_bytes - begin)
            digest, begin = _begin_hash(seed), n_bytes
        if tell is not None:
            tell(n_bytes)
    if not n_bytes:
        raise RegardError("The training source holds no text: only blank lines or empty records. Give some text.")
    if p_valid == 0 and p_test == 0:
        return SplitPlan(_all_train, n_bytes)
    hashes = np.frombuffer(keys, dtype=np.uint64)
    if len(keys) >= MIN_DOCUMENTS:
        return SplitPlan(_by_document(split_documents(hashes, p_valid, p_test)), n_bytes)
    if takes_tail:
        return SplitPlan(_cut_off_tail(pieces, n_bytes, p_valid, p_test), n_bytes)
    few = split_few_documents(hashes, np.frombuffer(sizes, dtype=np.int64), p_valid, p_test)
    if few is not None:
        return SplitPlan(_by_document(few), n_bytes)
    return _cut_stretches(pieces, n_bytes, p_valid, p_test)


def split_few_documents(
    keys: Keys, sizes: NDArray[np.int64], p_valid: float, p_test: float
) -> NDArray[np.uint8] | None:
    """The split of each of a few documents: one each is set apart, the first by hash whose size is near what is wanted.

    None where there is none between a third and three times of it; documents that are there twice stay in training.
    """
    split = np.full(len(keys), TRAIN, dtype=np.uint8)
    ranked = [i for i in np.argsort(keys, kind="stable").tolist() if np.count_nonzero(keys == keys[i]) == 1]
    for name, part in ((TEST, p_test), (VALID, p_valid)):
        wanted = part * float(sizes.sum())
        near = [i for i in ranked if split[i] == TRAIN and wanted / 3 <= sizes[i] <= 3 * wanted]
        if part and not near:
            return None
        split[near[:1]] = name
    return split if len(keys) >= 3 else None


def _cut_stretches(pieces: Pieces, n_bytes: int, p_valid: float, p_test: float) -> SplitPlan:
    """Cut the text into equal parts, and each of these into training, validation, training and test text."""
    smallest = min(part for part in (p_valid, p_test) if part)
    n = max(1, min(MAX_STRETCHES, int(smallest * n_bytes) // STRETCH_BYTES))
    held_out = [(name, part) for name, part in ((VALID, p_valid), (TEST, p_test)) if part]
    p_train = (1 - p_valid - p_test) / len(held_out)
    names = [number for name, _ in held_out for number in (TRAIN, name)] * n
    ends = np.cumsum([part / n for _, p_held in held_out for part in (p_train, p_held)] * n)
    cuts = find_cuts(pieces(), np.rint(n_bytes * ends[:-1]).astype(int).tolist())
    _check_sizes(n_bytes, [0, *cuts, n_bytes], names, p_valid, p_test)
    return SplitPlan(_by_cuts(cuts, names), n_bytes, n)


def _cut_off_tail(pieces: Pieces, n_bytes: int, p_valid: float, p_test: float) -> Split:
    """The first part of the text is for training, the next for validation, the last for test."""
    targets = sorted({round(n_bytes * until) for until in (1 - p_valid - p_test, 1 - p_test) if until < 1})
    found = find_cuts(pieces(), targets)
    cuts = [found[0], n_bytes if p_test == 0 else found[-1]]
    names = [TRAIN, VALID, TEST]
    _check_sizes(n_bytes, [0, *cuts, n_bytes], names, p_valid, p_test)
    return _by_cuts(cuts, names)


def _check_sizes(n_bytes: int, bounds: list[int], names: list[int], p_valid: float, p_test: float) -> None:
    """Refuse a split that stays empty though a part of the text was asked for."""
    parts = (1 - p_valid - p_test, p_valid, p_test)
    sizes = np.bincount(names, weights=np.diff(bounds), minlength=len(NAMES))
    for size, name, part in zip(sizes, NAMES, parts, strict=True):
        if size <= 0 < part or 0 < part * n_bytes < 1:
            raise RegardError(
                f"The text has {n_bytes} bytes, too few to cut {part:.0%} off for {name}. Give more text, separate "
                f"files (data.valid, data.test), or set data.p_valid and data.p_test to 0."
            )


def _begin_hash(seed: int, text: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(text, digest_size=8, key=seed.to_bytes(8, "little"))


def _all_train(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece]]:
    return ((TRAIN, piece) for piece in pieces)


def split_documents(
    keys: Keys,
    p_valid: float,
    p_test: float,
    items: str = "documents",
    way_out: str = "Give separate files or another data.document.",
) -> NDArray[np.uint8]:
    """The split of each document, from the hash of its content; an error calls them `items` and ends with `way_out`.

    Distinct documents are ranked by hash; the first p_test of them are test, the next p_valid validation. A document
    that is there so often that it would fill a quarter of a split stays in training with all its copies; where all are,
    those that are there least often may go, if one has room.
    """
    unique, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    split = np.full(len(unique), TRAIN, dtype=np.uint8)
    for name, part in ((TEST, p_test), (VALID, p_valid)):
        if part == 0:
            continue
        wanted = max(1, round(part * len(keys)))
        fewest = int(counts[split == TRAIN].min(initial=len(keys)))
        at_most = max(1, wanted // 4, fewest if fewest <= wanted else 0)
        ranked = np.flatnonzero((split == TRAIN) & (counts <= at_most))
        taken = ranked[: np.searchsorted(np.cumsum(counts[ranked]), wanted, side="right")]
        if not len(taken):
            raise RegardError(
                f"None of the {len(keys):,} {items} can be set apart for {NAMES[name]}: {len(unique):,} of them "
                f"{'is' if len(unique) == 1 else 'are'} different, and copies stay together. {way_out}"
            )
        split[taken] = name
    return split[which]


def _by_document(split: NDArray[np.uint8]) -> Split:
    def go(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece]]:
        number = 0
        for piece in pieces:
            yield int(split[number]), piece
            number += piece.ends

    return go


def find_cuts(pieces: Iterable[Piece], targets: list[int]) -> list[int]:
    """Byte positions near `targets`, which ascend, where the text can be cut.

    Each is the first line or document end from its target on; else the last one before it; else the next white space;
    else the next character.
    """
    found = [_Cut(target) for target in targets]
    position = 0
    for text, ends in pieces:
        data = text.encode()
        for cut in found:
            cut.look(data, position, ends)
        position += len(data)
    cuts: list[int] = []
    for i, cut in enumerate(found):
        low = cuts[-1] if cuts else 0
        high = max(targets[i + 1] if i + 1 < len(targets) else position, low)
        cuts.append(cut.best(low, high))
    return cuts


class _Cut:
    """The places near one target where a text could be cut, found while it is read."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._line_after: int | None = None
        self._line_before: int | None = None
        self._space: int | None = None
        self._character: int | None = None

    def look(self, data: bytes, position: int, ends: bool) -> None:
        end, at = position + len(data), max(self.target - position, 0)
        if position < self.target:
            if (i := data.rfind(b"\n", 0, at)) >= 0:
                self._line_before = position + i + 1
            if ends and end <= self.target:
                self._line_before = end
        if end < self.target or self._line_after is not None:
            return
        if (i := data.find(b"\n", max(at - 1, 0))) >= 0:
            self._line_after = position + i + 1
        elif ends:
            self._line_after = end
        if self._space is None and (i := data.find(b" ", at)) >= 0:
            self._space = position + i + 1
        if self._character is None and at < len(data):
            self._character = position + next((i for i in range(at, len(data)) if data[i] & 0xC0 != 0x80), len(data))

    def best(self, low: int, high: int) -> int:
        """The best place strictly between `low` and `high`; `low` (nothing is left) where there is none."""
        order = (self._line_after, self._line_before, self._space, self._character)
        return next((place for place in order if place is not None and low < place < high), low)


def _by_cuts(cuts: list[int], names: list[int]) -> Split:
    """The text up to the first cut is in the first split of `names`, and so on; a cut ends a document."""

    def go(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece]]:
        position = 0
        for text, ends in pieces:
            data = text.encode()
            inside = [c - position for c in cuts if position < c < position + len(data)]
            bounds = [0, *dict.fromkeys(inside), len(data)]
            for begin, end in pairwise(bounds):
                name = names[sum(c <= position + begin for c in cuts)]
                is_last = (ends and end == len(data)) or position + end in cuts
                yield name, Piece(data[begin:end].decode(), is_last)
            position += len(data)

    return go


def groups_by_text(sources: Keys, targets: Keys) -> Keys:
    """One key for all pairs that share a text, at one remove or more; made of the smallest hash of their texts.

    Connected components: a text is a node, a pair is an edge from its source to its target. In several parts the target
    of one pair is often the source of another (a.en to a.de, and a.de to a.fr): what is held out of one must not be
    trained on in another.

    >>> keys = groups_by_text(np.array([1, 2, 5, 7], dtype=np.uint64), np.array([2, 3, 6, 5], dtype=np.uint64))
    >>> (keys == keys[0]).tolist(), (keys == keys[2]).tolist()
    ([True, True, False, False], [False, False, True, True])
    """
    texts, ends = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    a, b = np.split(ends, 2)
    root = np.arange(len(texts))  # texts ascend: the least of a group's numbers is that of its smallest hash
    while np.any(root[a] != root[b]):
        np.minimum.at(root, np.maximum(root[a], root[b]), np.minimum(root[a], root[b]))
        while np.any(root != root[root]):
            root = root[root]
    return _mix(texts[root[a]])


def _mix(hashes: Keys) -> Keys:
    """Other hashes, one to one: by the smallest of theirs, groups of many texts would be the first to be held out."""
    mixed = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # SplitMix64 (Steele et al. 2014)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
