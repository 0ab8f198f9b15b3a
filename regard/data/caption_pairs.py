"""Pictures with their captions, read, checked and split by picture.

What cannot be used is an error that names it, or, with `skips_bad`, is left out and counted by kind. Where the files of
a split name the pictures, captions and pictures that no split names are not looked at.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.caption_config import CaptionConfig
from regard.data.caption_lines import read_caption_lines
from regard.data.pictures import SUFFIXES, Pictures, Pixels, load_pictures
from regard.data.reading import BadLine, text_blocks
from regard.data.split import NAMES, TEST, TRAIN, VALID, split_documents
from regard.errors import RegardError

EMPTY = "empty caption"
NO_PICTURE = "caption without its picture"
NO_CAPTION = "picture without captions"
UNREADABLE = "unreadable picture"

SKIP = "or leave such out: --skip-bad (data.skips_bad)"


@dataclass(frozen=True)
class CaptionSet:
    """The pictures of one split: names, where they stand in the array of all pictures, and their captions."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    captions: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class CaptionData:
    """Three splits over one array of pictures, and what was left out, by kind."""

    train: CaptionSet
    valid: CaptionSet
    test: CaptionSet
    pictures: Pictures
    config: CaptionConfig
    skipped: dict[str, int]

    def centre(self, numbers: Sequence[int]) -> Pixels:
        """The middle of pictures, (B, size, size, 3): what a model sees of them outside of training."""
        first = self.config.n_margin // 2
        cut = slice(first, first + self.config.size)
        return np.ascontiguousarray(self.pictures.pixels[list(numbers)][:, cut, cut])


class Skipped:
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
    folder = Path(config.pictures).expanduser()
    if not folder.is_dir():
        raise RegardError(f"There is no folder of pictures '{folder}'. Set pictures to the folder that holds them.")
    skipped = Skipped(config.skips_bad)
    given = {name: _names(getattr(config, name)) for name in NAMES if getattr(config, name) is not None}
    _check_apart(given)
    wanted = [name for names in given.values() for name in names] if "train" in given else None
    captions = _captions_by_name(config, skipped, None if wanted is None else set(wanted))
    names = _usable(wanted, captions, folder, config, skipped)
    pictures = load_pictures([folder / name for name in names], config.side, config.fit, cache, tell)
    for number, why in pictures.bad.items():
        skipped.add(UNREADABLE, f"The picture '{folder / names[number]}' cannot be used: {why}. Replace it, {SKIP}.")
    good = [number for number in range(len(names)) if number not in pictures.bad]
    sets = [
        CaptionSet(tuple(names[n] for n in part), tuple(part), tuple(tuple(captions[names[n]]) for n in part))
        for part in _split(good, names, pictures.hashes, given, config)
    ]
    if not sets[TRAIN].names:
        raise RegardError(
            f"No picture is left for training: {told_skipped(skipped.counts) or 'none has a caption'}. Check pictures, "
            "captions and train."
        )
    return CaptionData(sets[TRAIN], sets[VALID], sets[TEST], pictures, config, dict(skipped.counts))


def _names(path: str) -> list[str]:
    """The names in a file of a split, each once."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise RegardError(f"There is no file of names '{file}'. Give a file with a picture's name a line.")
    lines = "".join(text_blocks(file, str(file))).split("\n")
    return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


def _check_apart(given: dict[str, list[str]]) -> None:
    if given and "train" not in given:
        raise RegardError(f"{' and '.join(given)} name pictures and train does not. Give train a file of names too.")
    seen: dict[str, str] = {}
    for split, names in given.items():
        for name in names:
            if name in seen:
                raise RegardError(f"The picture '{name}' is named by {seen[name]} and by {split}. Take it out of one.")
            seen[name] = split


def _captions_by_name(config: CaptionConfig, skipped: Skipped, wanted: set[str] | None) -> dict[str, list[str]]:
    path = Path(config.captions).expanduser()
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


def _usable(
    wanted: Iterable[str] | None,
    captions: dict[str, list[str]],
    folder: Path,
    config: CaptionConfig,
    skipped: Skipped,
) -> list[str]:
    """The pictures that are there and have captions, in the order of the splits, else of their names."""
    there = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES}
    names = sorted(there | captions.keys()) if wanted is None else wanted
    usable = []
    for name in names:
        if name in there and name in captions:
            usable.append(name)
        elif name in captions:
            skipped.add(
                NO_PICTURE,
                f"'{name}' has a caption in {config.captions} and is not in {folder}. Put the picture "
                f"there, take it out of the captions, {SKIP}.",
            )
        elif name in there:
            skipped.add(
                NO_CAPTION,
                f"The picture '{folder / name}' has no caption in {config.captions}. Write one, take the picture out, "
                f"{SKIP}.",
            )
        else:
            skipped.add(
                NO_PICTURE,
                f"'{name}', which a split names, is neither in {folder} nor in {config.captions}. Take it out, {SKIP}.",
            )
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
        seed = config.split_seed.to_bytes(8, "little")
        keys = [_key(hashes[good[i]], seed) for i in train]
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


def _key(content: str, seed: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content.encode(), digest_size=8, key=seed).digest(), "little")


def told_skipped(counts: Mapping[str, int]) -> str:
    """What was left out, in words.

    >>> told_skipped({"unreadable picture": 1, "empty caption": 2})
    'empty caption 2, unreadable picture 1'
    """
    return ", ".join(f"{kind} {n:,}" for kind, n in sorted(counts.items()))
