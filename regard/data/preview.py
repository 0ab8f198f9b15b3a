"""What a source holds, before anything is trained on it: `regard data SOURCE` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.caption_config import CaptionConfig
from regard.data.config import DataConfig
from regard.data.labelled import TAGS, Answer, Example
from regard.data.labelled_config import LabelledConfig
from regard.data.labelled_grammar import is_labelled, kind_of
from regard.data.labelled_splits import PreparedLabelled, prepare_labelled
from regard.data.pair_grammar import PairsOfSplit, is_grammar, preview_grammar
from regard.data.pairs_config import PairsConfig
from regard.data.pictures import SUFFIXES
from regard.data.prepared_pairs import read_pairs
from regard.data.reading import UTF8, BadLine, parse_record, read_lines
from regard.data.split import NAMES
from regard.data.tables import may_be_pairs
from regard.settings import Settings
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress

N_FIRST = 3  # pairs of a split that are shown


@dataclass(frozen=True)
class PairsPreview:
    """The splits of pairs with the first few of each, and a sentence on how many there are and what was left out."""

    splits: list[PairsOfSplit]
    summary: str


def choose_config(
    sources: Sequence[str], settings: Mapping[str, Any]
) -> DataConfig | PairsConfig | CaptionConfig | LabelledConfig:
    """How sources are read: as captions, if the first is a folder of pictures; as labelled texts, if the name says so;
    as pairs, if they are two files, or one that has two sides; else as text.
    """
    if len(sources) == 1 and _has_labels(sources[0]):
        return LabelledConfig.from_dict({"train": sources[0], **settings}, "data")
    if len(sources) == 2 and _has_pictures(Path(sources[0]).expanduser()):
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
    kind = kind_of(data.train) if is_grammar(data.train) else TAGS
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


def _has_pictures(folder: Path) -> bool:
    return folder.is_dir() and any(path.suffix.lower() in SUFFIXES for path in folder.rglob("*"))


def _has_two_sides(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether one source holds pairs: by settings that only pairs have, by its name, or by its first line."""
    suffixes, path = set(Path(name).suffixes), Path(name).expanduser()
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
