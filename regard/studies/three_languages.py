"""Sentences in three languages, and which of them each two languages learn from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

from regard.errors import RegardError, suggest_path
from regard.studies.config import ZeroShotConfig

Direction = tuple[str, str]
Texts = dict[str, list[str]]
"""Sentences by language; those of one number are translations of each other."""


def taught_directions(languages: Sequence[str]) -> tuple[Direction, ...]:
    """From the first language to the second and back, and from the second to the third and back.

    >>> taught_directions(["en", "de", "fr"])
    (('en', 'de'), ('de', 'en'), ('de', 'fr'), ('fr', 'de'))
    """
    a, b, c = languages
    return (a, b), (b, a), (b, c), (c, b)


def tag_of(language: str) -> str:
    """What stands before a source that is to be translated into the language.

    >>> tag_of("fr")
    '<2fr>'
    """
    return f"<2{language}>"


def list_tagged_files(folder: Path, split: str, directions: Sequence[Direction]) -> list[list[str]]:
    """Files of `folder`, two for each direction and the tag, as `data.train` takes them."""
    return [
        [str(_part(folder, split, (x, y), x)), str(_part(folder, split, (x, y), y)), tag_of(y)] for x, y in directions
    ]


def write_parts(data: Path, folder: Path, config: ZeroShotConfig) -> dict[str, int]:
    """Cut the sentences of `data` into files for each two languages, where `list_tagged_files` finds them.

    The training sentences of each two are their own, unless they are to be shared. Returns how many of each split.
    """
    a, b, c = config.languages
    train, valid, _ = config.splits
    n_of = {train: _n_train(data, config), valid: count_lines(data, valid, config.languages)}
    for split, n in n_of.items():
        for i, (x, y) in enumerate(((a, b), (b, c), (a, c))):
            start = i * n if split == train and not config.shares_sentences else 0
            for language in (x, y):
                path = _part(folder, split, (x, y), language)
                with (
                    _open_split(data, split, language) as whole,
                    open(path, "w", encoding="utf-8", newline="\n") as part,
                ):
                    part.writelines(islice(whole, start, start + n))
    return n_of


def _part(folder: Path, split: str, direction: Direction, language: str) -> Path:
    return folder / f"{split}.{'-'.join(sorted(direction))}.{language}"


def _n_train(data: Path, config: ZeroShotConfig) -> int:
    """How many training sentences each two languages get."""
    n = count_lines(data, config.splits[0], config.languages)
    room = n if config.shares_sentences else n // 3
    if room >= max(1, config.n_pairs or 1):
        return config.n_pairs or room
    needed, why, way_out = config.n_pairs or 1, "", ""
    if not config.shares_sentences:
        needed, why = 3 * needed, ", different ones for each two languages"
        way_out = ", or set shares_sentences to true"
    raise RegardError(
        f"'{data}' has {n:,} sentences to learn from, and {needed:,} are needed{why}. "
        f"Set n_pairs to {max(room, 10):,} or less{way_out}."
    )


def count_lines(data: Path, split: str, languages: Sequence[str]) -> int:
    """How many sentences a split has; refused where a file is missing or the files differ in length."""
    counts: dict[str, int] = {}
    for language in languages:
        path = data / f"{split}.{language}"
        if not path.is_file():
            raise RegardError(
                f"There is no file '{path}'.{suggest_path(path)} The study reads files called SPLIT.LANGUAGE; "
                "name yours with --set splits='[train, valid, test]' and --set languages='[en, de, fr]'."
            )
        with open(path, "rb") as file:
            counts[language] = sum(1 for _ in file)
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{language} has {n:,} lines" for language, n in counts.items())
        raise RegardError(
            f"The files {split}.* in '{data}' are not aligned: {found}. Line i of all must be one sentence."
        )
    return counts[languages[0]]


def read_texts(data: Path, split: str, languages: Sequence[str], n: int) -> Texts:
    """The first n sentences of a split in each language."""
    texts: Texts = {}
    for language in languages:
        with _open_split(data, split, language) as file:
            texts[language] = [line.strip() for line in islice(file, n)]
    return texts


def _open_split(data: Path, split: str, language: str) -> TextIO:
    """Of line ends only \\n is one, as where files of pairs are read: a lone \\r is a part of its sentence."""
    return open(data / f"{split}.{language}", encoding="utf-8", newline="\n")
