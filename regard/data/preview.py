"""What a source holds, before anything is trained on it: `regard data SOURCE` prints it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.caption_config import CaptionConfig
from regard.data.config import DataConfig
from regard.data.folders import walk_files
from regard.data.labelled import CLASSES, LABEL_NAMES, NUMBERS, TAGS, TEXT_NAMES, Answer, Example
from regard.data.labelled_config import LabelledConfig
from regard.data.labelled_grammar import is_labelled, kind_of
from regard.data.labelled_splits import LabelledReader, PreparedLabelled, prepare_labelled
from regard.data.pair_grammar import PairsOfSplit, is_grammar, preview_grammar
from regard.data.pairs_config import PairsConfig
from regard.data.pictures import SUFFIXES
from regard.data.prepared_pairs import read_pairs
from regard.data.reading import UTF8, BadLine, parse_record, read_lines
from regard.data.split import NAMES
from regard.data.tables import looks_like_names, may_be_pairs, names_columns, read_rows
from regard.files import expand_home
from regard.settings import Settings
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress

N_FIRST = 3  # pairs of a split that are shown
N_TOLD = 200  # rows from which columns of labels are told


@dataclass(frozen=True)
class PairsPreview:
    """The splits of pairs with the first few of each, and a sentence on how many there are and what was left out."""

    splits: list[PairsOfSplit]
    summary: str


def choose_config(
    sources: Sequence[str], settings: Mapping[str, Any]
) -> DataConfig | PairsConfig | CaptionConfig | LabelledConfig:
    """How sources are read: as captions, if the first is a folder of pictures; as labelled texts, if the name or a
    column of labels says so; as pairs, if they are two files, or one that has two sides; else as text.
    """
    if len(sources) == 1 and _has_labels(sources[0]):
        return LabelledConfig.from_dict({"train": sources[0], **settings}, "data")
    if len(sources) == 1 and (columns := _find_labels(sources[0], settings)) is not None:
        return LabelledConfig.from_dict({"train": sources[0], **columns, **settings}, "data")
    if len(sources) == 2 and _has_pictures(expand_home(sources[0])):
        return CaptionConfig.from_dict({"pictures": sources[0], "captions": sources[1], **settings}, "data")
    train = sources[0] if len(sources) == 1 else tuple(sources)
    is_pairs = len(sources) == 2 if len(sources) != 1 else _has_two_sides(sources[0], settings)
    config: type[Settings] = PairsConfig if is_pairs else DataConfig
    chosen = config.from_dict({"train": train, **settings}, "data")
    assert isinstance(chosen, DataConfig | PairsConfig)
    return chosen


def preview_pairs(data: PairsConfig, *, progress: Progress | None = None, cache: Path | None = None) -> PairsPreview:
    """How many pairs each split has, and the first few; of the built-in grammar without writing them all."""
    if isinstance(data.train, str) and is_grammar(data.train):
        return PairsPreview(preview_grammar(data.train, N_FIRST), "")
    texts = read_pairs(data, progress=progress, cache=cache)
    splits = []
    for number, name in enumerate(NAMES):
        rows = texts.rows(number)
        first = [(texts.source[i].tobytes().decode(), texts.target[i].tobytes().decode()) for i in rows[:N_FIRST]]
        splits.append(PairsOfSplit(name, len(rows), first))
    return PairsPreview(splits, texts.counts.describe())


def preview_labelled(data: LabelledConfig, progress: Progress | None = None) -> tuple[str, PreparedLabelled]:
    """The kind of the labels of one source that `choose_config` takes for labelled texts, and its examples."""
    assert isinstance(data.train, str)
    kind = kind_of(data.train) if is_grammar(data.train) else TAGS if _has_labels(data.train) else CLASSES
    if kind == CLASSES and not is_grammar(data.train):
        reader = LabelledReader(data, CLASSES)
        if all(_is_number(str(example.label)) for example in islice(reader.read((data.train,)), N_TOLD)):
            kind = NUMBERS
    return kind, prepare_labelled(data, kind, TokenizerConfig(kind="byte"), progress=progress)


def show_example(example: Example) -> tuple[str, str]:
    """The texts of an example and its label, each as a line.

    >>> show_example(Example(("Anna sings",), ("PROPN", "VERB"), "a.conll, line 1"))
    ('Anna sings', 'PROPN VERB')
    """
    parts = example.label if isinstance(example.label, tuple) else (example.label,)
    return "  ".join(example.texts), " ".join(part.text if isinstance(part, Answer) else str(part) for part in parts)


def _has_labels(name: str) -> bool:
    return (is_grammar(name) and is_labelled(name)) or bool({".conll", ".conllu"} & set(Path(name).suffixes))


def _find_labels(name: str, settings: Mapping[str, Any]) -> dict[str, str] | None:
    """The settings that name the columns of a text and its label in a table or records; None: it holds other things.

    They are named by settings or a header; else, of two columns, one is of numbers, or of single words that come again.
    """
    suffixes, path = set(Path(name).suffixes), expand_home(name)
    of_labelled_only = {"text", "second", "label"} & settings.keys()
    of_others = settings.keys() - {line.name for line in LabelledConfig.help()}
    if of_others or not suffixes & {".tsv", ".csv", ".jsonl", ".ndjson"} or not path.is_file():
        return {} if of_labelled_only and not of_others else None
    if of_labelled_only:
        return {}
    encoding = LabelledConfig(train=name, encoding=settings.get("encoding", UTF8)).encoding
    lines = list(islice(read_lines(path, name, encoding), N_TOLD))
    if suffixes & {".jsonl", ".ndjson"}:
        record = next((parse_record(line) for line in lines if isinstance(line, str)), None)
        known = isinstance(record, Mapping) and set(TEXT_NAMES) & record.keys() and set(LABEL_NAMES) & record.keys()
        return {} if known else None
    first = next((line for line in lines if isinstance(line, str) and line.strip()), "")
    separator = "\t" if ".tsv" in suffixes else max(",;\t", key=first.count)
    rows = [row for _, row in read_rows(lines, separator, ".csv" in suffixes) if not isinstance(row, BadLine) and row]
    header, body = ([cell.strip() for cell in rows[0]], rows[1:]) if rows else ([], [])
    if set(TEXT_NAMES) & set(header) and set(LABEL_NAMES) & set(header):
        return {}
    if len(header) != 2 or names_columns(header) or len(body) < 2 or any(len(row) != 2 for row in body):
        return None
    labels = [column for column in (1, 0) if _are_labels([row[column].strip() for row in body])]
    if len(labels) != 1:
        return None
    label, has_header = labels[0], not _is_number(header[labels[0]])
    if not _is_number(body[0][label]):  # of words: a header is none of them
        has_header = header[label] not in {row[label].strip() for row in body}
    named = header if has_header and looks_like_names(header) else ["1", "2"]
    return {"text": named[1 - label], "label": named[label]}


def _are_labels(cells: Sequence[str]) -> bool:
    """Whether cells are labels and no texts: numbers, or single words most of which come again.

    >>> _are_labels(["5", "1", "3.5"]), _are_labels(["pos", "neg", "pos", "neg"]), _are_labels(["a dog", "a cat"])
    (True, True, False)
    """
    if all(map(_is_number, cells)):
        return True
    return not any(len(cell.split()) != 1 for cell in cells) and len(cells) >= 2 * len(set(cells))


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _has_pictures(folder: Path) -> bool:
    return folder.is_dir() and any(path.suffix.lower() in SUFFIXES for path in walk_files(folder))


def _has_two_sides(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether one source holds pairs: by settings that only pairs have, by its name, or by its first line."""
    suffixes, path = set(Path(name).suffixes), expand_home(name)
    of_pairs_only = {line.name for line in PairsConfig.help()} - {line.name for line in DataConfig.help()}
    if is_grammar(name) or ".mrg" in suffixes or of_pairs_only & settings.keys():
        return True
    if not suffixes & {".tsv", ".csv", ".jsonl", ".ndjson"} or not path.is_file():
        return False
    encoding = DataConfig(train=name, encoding=settings.get("encoding", UTF8)).encoding
    field, first = str(settings.get("field", "text")), next(read_lines(path, name, encoding), "")
    if isinstance(first, BadLine):
        return False
    if suffixes & {".tsv", ".csv"}:
        cells = [cell.strip('" ') for cell in first.split(max("\t,;", key=first.count))]
        return "field" not in settings and field not in cells and may_be_pairs(cells)
    record = parse_record(first)
    return not isinstance(record, BadLine) and {"source", "target"} <= record.keys() and field not in record
