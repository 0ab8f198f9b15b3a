"""Pictures with their captions, ready to train on: read, checked, split by picture, and a vocabulary learned.

What cannot be used is an error that names it, or, with `skips_bad`, is left out and counted by kind. Where the files of
a split name the pictures, captions and pictures that no split names are not looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.cache import key_of
from regard.data.caption_config import CaptionConfig
from regard.data.folders import walk_files
from regard.data.pictures import SUFFIXES, Pictures, Pixels, load_pictures
from regard.data.reading import BadLine, parse_record, read_lines, refuse_surrogates, tell_missing_field
from regard.data.split import NAMES, TEST, TRAIN, VALID, Counts, describe_skipped, hash_key, split_documents
from regard.errors import RegardError
from regard.files import expand_home
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, train_tokenizer
from regard.text.tokenizer import Tokenizer

READING = "reading pictures"
EMPTY = "empty caption"
NO_PICTURE = "caption without its picture"
NO_CAPTION = "picture without captions"
UNREADABLE = "unreadable picture"
SKIP = "or leave such out: --skip-bad (data.skips_bad)"

# Flickr8k's own form has a tab behind the number; copies are about that have an @ there, or an @ for the #.
NUMBERED = re.compile(r"(?P<name>[^\t]+?)[#@]\d+[\t@](?P<caption>.*)", re.DOTALL)

Said = list[tuple[str, str]]
"""Names of pictures, each with a caption, which may be empty."""


@dataclass(frozen=True)
class CaptionSet:
    """The pictures of one split: names, where they stand in the array of all pictures, and their captions."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    captions: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def texts(self) -> Iterator[str]:
        """All captions, one after the other."""
        return (text for texts in self.captions for text in texts)

    @property
    def n_captions(self) -> int:
        return sum(map(len, self.captions))

    @property
    def n_bytes(self) -> int:
        """Of all captions, in UTF-8."""
        return sum(len(text.encode()) for text in self.texts)

    def first(self, n: int) -> CaptionSet:
        """The first n pictures."""
        return CaptionSet(self.names[:n], self.numbers[:n], self.captions[:n])


@dataclass(frozen=True)
class CaptionData:
    """Three splits over one array of pictures, and what was left out, by kind."""

    train: CaptionSet
    valid: CaptionSet
    test: CaptionSet
    pictures: Pictures
    config: CaptionConfig
    skipped: dict[str, int]

    def centre(self, numbers: Sequence[int] | NDArray[np.int64]) -> Pixels:
        """The middle of pictures, (B, size, size, 3): what a model sees of them outside of training."""
        first = self.config.n_margin // 2
        cut = slice(first, first + self.config.size)
        return np.ascontiguousarray(self.pictures.pixels[[int(n) for n in numbers]][:, cut, cut])

    def squares(self, numbers: Sequence[int] | NDArray[np.int64]) -> Pixels:
        """The middle of pictures as a model takes them, (B, 3, size, size)."""
        return np.ascontiguousarray(self.centre(numbers).transpose(0, 3, 1, 2))


@dataclass(frozen=True)
class PreparedCaptions:
    """`fingerprint` stands for pictures and captions, how they are cut and split, and the vocabulary."""

    tokenizer: Tokenizer
    data: CaptionData
    fingerprint: str

    @property
    def train(self) -> CaptionSet:
        return self.data.train

    @property
    def valid(self) -> CaptionSet:
        return self.data.valid

    @property
    def test(self) -> CaptionSet:
        return self.data.test

    @property
    def counts(self) -> Counts:
        """How many pictures and captions there are, and what was left out."""
        train, valid, test = self.train, self.valid, self.test
        n_captions = train.n_captions, valid.n_captions, test.n_captions
        skipped = self.data.skipped
        return Counts("pictures", len(train), len(valid), len(test), skipped, inside=("captions", n_captions))


def prepare_captions(
    config: CaptionConfig, tokenizer: TokenizerConfig, *, progress: Progress | None = None, cache: Path | None = None
) -> PreparedCaptions:
    """Read and split; learn the vocabulary from the training captions, or load the one that is named."""
    data = load_captions(config, cache, None if progress is None else lambda n: progress(READING, n, None))
    learned = train_tokenizer(tokenizer, data.train.texts, progress)
    return PreparedCaptions(learned, data, _fingerprint(data, learned))


def encode_captions(tokenizer: Tokenizer, config: CaptionConfig, *, cache: Path | None = None) -> PreparedCaptions:
    """All pictures, as the split train, under a tokenizer that is there already; to score other pictures, say."""
    whole = config.replace(train=None, valid=None, test=None, p_valid=0.0, p_test=0.0)
    data = load_captions(whole, cache)
    return PreparedCaptions(tokenizer, data, _fingerprint(data, tokenizer))


def _fingerprint(data: CaptionData, tokenizer: Tokenizer) -> str:
    splits = [
        [[data.pictures.hashes[number], texts] for number, texts in zip(split.numbers, split.captions, strict=True)]
        for split in (data.train, data.valid, data.test)
    ]
    config = data.config
    cut = [config.size, config.n_margin, config.fit, config.flips]
    return key_of(splits, cut, tokenizer.hash)


class _Skipped:
    """What cannot be used: an error at once, or counted."""

    def __init__(self, skips: bool) -> None:
        self.skips, self.counts = skips, Counter[str]()

    def add(self, kind: str, message: str) -> None:
        if not self.skips:
            raise RegardError(message)
        self.counts[kind] += 1


def load_captions(
    config: CaptionConfig, cache: Path | None = None, tell: Callable[[int], None] | None = None
) -> CaptionData:
    """Read captions and pictures; `tell` is called with how many pictures were read, where they are read anew."""
    folder = expand_home(config.pictures)
    if not folder.is_dir():
        raise RegardError(f"There is no folder of pictures '{folder}'. Set pictures to the folder that holds them.")
    skipped = _Skipped(config.skips_bad)
    given = {name: _read_names(getattr(config, name)) for name in NAMES if getattr(config, name) is not None}
    _check_apart(given)
    wanted = [name for names in given.values() for name in names] if "train" in given else None
    captions = _read_captions(config, skipped, None if wanted is None else set(wanted))
    names = _find_usable(wanted, captions, folder, config, skipped)
    pictures = load_pictures([folder / name for name in names], config.side, config.fit, cache, tell)
    for number, why in pictures.bad.items():
        skipped.add(UNREADABLE, f"The picture '{folder / names[number]}' cannot be used: {why}. Replace it, {SKIP}.")
    good = [number for number in range(len(names)) if number not in pictures.bad]
    sets = [
        CaptionSet(tuple(names[n] for n in part), tuple(part), tuple(tuple(captions[names[n]]) for n in part))
        for part in _split(good, names, pictures.hashes, given, config)
    ]
    if not sets[TRAIN].names:
        why = describe_skipped(skipped.counts, "") if skipped.counts else "none has a caption"
        raise RegardError(f"No picture is left for training: {why}. Check pictures, captions and train.")
    return CaptionData(sets[TRAIN], sets[VALID], sets[TEST], pictures, config, dict(skipped.counts))


def _read_names(path: str) -> list[str]:
    """The names in a file of a split, each once."""
    file = expand_home(path)
    if not file.is_file():
        raise RegardError(f"There is no file of names '{file}'. Give a file with a picture's name a line.")
    names: dict[str, None] = {}
    for number, line in enumerate(read_lines(file, str(file)), start=1):
        if isinstance(line, BadLine):
            raise RegardError(f"{file}, line {number} {line.why}")
        if line.strip():
            names[line.strip()] = None
    return list(names)


def _check_apart(given: dict[str, list[str]]) -> None:
    if given and "train" not in given:
        raise RegardError(f"{' and '.join(given)} name pictures and train does not. Give train a file of names too.")
    seen: dict[str, str] = {}
    for split, names in given.items():
        for name in names:
            if name in seen:
                raise RegardError(f"The picture '{name}' is named by {seen[name]} and by {split}. Take it out of one.")
            seen[name] = split


def _read_captions(config: CaptionConfig, skipped: _Skipped, wanted: set[str] | None) -> dict[str, list[str]]:
    """The captions of every picture, or of those that are wanted."""
    path = expand_home(config.captions)
    captions: dict[str, list[str]] = {}
    for number, found in enumerate(read_caption_lines(path), start=1):
        where = f"{path}, line {number}"
        if isinstance(found, BadLine):
            way_out = "To leave out such lines and count them: --skip-bad (data.skips_bad)."
            skipped.add(found.kind, f"{where} {found.why} {way_out}")
            continue
        for name, caption in found:
            if wanted is not None and name not in wanted:
                continue
            if caption:
                captions.setdefault(name, []).append(caption)
            else:
                skipped.add(EMPTY, f"{where}: the caption of '{name}' is empty. Write one, {SKIP}.")
    return captions


def _find_usable(
    wanted: Iterable[str] | None,
    captions: dict[str, list[str]],
    folder: Path,
    config: CaptionConfig,
    skipped: _Skipped,
) -> list[str]:
    """The pictures that are there and have captions, in the order of the splits, else of their names."""
    there = {file.relative_to(folder).as_posix() for file in walk_files(folder) if file.suffix.lower() in SUFFIXES}
    usable = []
    for name in sorted(there | captions.keys()) if wanted is None else wanted:
        if name in there and name in captions:
            usable.append(name)
        elif name in captions:
            why = f"has a caption in {config.captions} and is not in {folder}. Put it there, take it out there, {SKIP}."
            skipped.add(NO_PICTURE, f"'{name}' {why}")
        elif name in there:
            why = f"has no caption in {config.captions}. Write one, take the picture out, {SKIP}."
            skipped.add(NO_CAPTION, f"The picture '{folder / name}' {why}")
        else:
            why = f"which a split names, is neither in {folder} nor in {config.captions}. Take it out, {SKIP}."
            skipped.add(NO_PICTURE, f"'{name}', {why}")
    return usable


def _split(
    good: list[int], names: list[str], hashes: Sequence[str], given: dict[str, list[str]], config: CaptionConfig
) -> list[list[int]]:
    """The numbers of the pictures of each split. One picture under two names is never cut in two."""
    if "train" in given:
        of = {name: NAMES.index(split) for split, listed in given.items() for name in listed}
        splits = np.array([of[names[n]] for n in good], dtype=np.uint8)
    else:
        splits = np.full(len(good), TRAIN, dtype=np.uint8)
    train = np.flatnonzero(splits == TRAIN)
    if len(train) and config.part_valid + config.part_test > 0:
        keys = [hash_key(hashes[good[i]].encode(), config.split_seed) for i in train]
        try:
            splits[train] = split_documents(np.array(keys, dtype=np.uint64), config.part_valid, config.part_test)
        except RegardError:
            raise RegardError(
                f"{len(set(keys))} different pictures in {len(keys)} are too few to set some apart for validation "
                f"(p_valid {config.part_valid:g}) and test (p_test {config.part_test:g}): copies of a picture stay "
                "together. Give more pictures, files of names (data.train, data.valid, data.test), or set data.p_valid "
                "and data.p_test to 0."
            ) from None
    return [[good[i] for i in np.flatnonzero(splits == split)] for split in (TRAIN, VALID, TEST)]


def read_caption_lines(path: Path) -> Iterator[Said | BadLine]:
    """What every line of a file says of which picture; a blank one says nothing."""
    if not path.is_file():
        raise RegardError(f"There is no file of captions '{path}'. Set captions to it.")
    read = read_record if path.suffix in (".jsonl", ".json") else read_columns
    for line in read_lines(path, str(path)):
        said = line if isinstance(line, BadLine) else read(line) if line.strip() else []
        if isinstance(said, BadLine):
            yield said
            continue
        trimmed = [(name.strip(), " ".join(caption.split())) for name, caption in said]
        if all(name for name, _ in trimmed):
            yield trimmed
        else:
            why = "names no picture. A caption needs the name of its picture before it."
            yield BadLine("no picture name", why)


def read_columns(line: str) -> Said | BadLine:
    """What a line says that begins with a picture's name, as Flickr8k writes it or with a tab.

    >>> read_columns("dog.jpg#0\\tA dog runs"), read_columns("dog.jpg\\tIt runs")
    ([('dog.jpg', 'A dog runs')], [('dog.jpg', 'It runs')])
    """
    if match := NUMBERED.fullmatch(line):
        return [(match["name"], match["caption"])]
    name, tab, caption = line.partition("\t")
    if tab:
        return [(name, caption)]
    return BadLine(
        "one column",
        f"is no caption: {line[:60]!r}. A line is 'name.jpg<TAB>caption' or 'name.jpg#0<TAB>caption'; files of JSON "
        "lines are named .jsonl.",
    )


def read_record(line: str) -> Said | BadLine:
    """What a JSON object says.

    >>> read_record('{"picture": "dog.jpg", "caption": ["A dog runs", "It runs"]}')
    [('dog.jpg', 'A dog runs'), ('dog.jpg', 'It runs')]
    """
    record = parse_record(line)
    if isinstance(record, BadLine):
        return record
    for field in ("picture", "caption"):
        if field not in record:
            return BadLine("no field", tell_missing_field(record, field))
    picture, captions = record["picture"], record["caption"]
    captions = [captions] if isinstance(captions, str) else captions
    if not isinstance(picture, str) or not isinstance(captions, list):
        return BadLine("no field", "is no caption: picture must be a name, and caption text or a list of texts.")
    if not all(isinstance(caption, str) for caption in captions):
        return BadLine("no field", "has a caption that holds something other than text. Give text or a list of texts.")
    broken = next(filter(None, map(refuse_surrogates, (picture, *captions))), None)
    return broken or [(picture, caption) for caption in captions]
