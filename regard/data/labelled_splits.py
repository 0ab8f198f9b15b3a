"""From what the user names to labelled examples in three splits, and the tokenizer of their training texts."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.data.builtin import BUILTIN
from regard.data.cache import cache_root
from regard.data.config import DataConfig
from regard.data.labelled import ANSWERS, CLASSES, LABELLED_FORM, TAGS, Columns, Example, read_file
from regard.data.labelled_config import LabelledConfig
from regard.data.labelled_grammar import draw_examples, kind_of
from regard.data.labelled_windows import Windows
from regard.data.pair_grammar import is_grammar
from regard.data.reading import BadLine
from regard.data.source import HUB, TextFile, resolve
from regard.data.split import NAMES, Counts, hash_key, split_documents
from regard.errors import RegardError, nearest
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, choose_part_to_learn_from, take_evenly, train_tokenizer
from regard.text.tokenizer import Tokenizer

MANY_LABELS = 100
FEW_LINES = 4  # so few may all have different labels
Examples = tuple[Example, ...]
Words = TypeVar("Words")


@dataclass(frozen=True)
class PreparedLabelled:
    """Examples by split, and the tokenizer that was learned from those for training."""

    tokenizer: Tokenizer
    train: Examples
    valid: Examples
    test: Examples
    fingerprint: str
    skipped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _windows: dict[Any, Windows] = field(default_factory=dict, compare=False, repr=False)
    _words: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def keep_windows(self, reading: Any, example: Example, make: Callable[[], Windows]) -> Windows:
        """The windows of an example, made once for each way of reading."""
        key = (reading, id(example))
        if key not in self._windows:
            self._windows[key] = make()
        return self._windows[key]

    def keep_words(self, choice: Any, make: Callable[[], Words]) -> Words:
        """The words of the training texts, listed once for each way of choosing them."""
        if choice not in self._words:
            self._words[choice] = make()
        return self._words[choice]  # type: ignore[no-any-return]

    @property
    def counts(self) -> Counts:
        return Counts("examples", len(self.train), len(self.valid), len(self.test), self.skipped)


class LabelledReader:
    """Reads sources one after the other; `skipped` counts the examples that were left out, by kind."""

    def __init__(self, data: LabelledConfig, kind: str) -> None:
        self._data, self._kind = data, kind
        self.skipped: Counter[str] = Counter()

    @property
    def names(self) -> str:
        """The sources of the training examples."""
        return ", ".join(self._data.names("train"))

    @property
    def reads_lines(self) -> bool:
        """Whether the training examples are lines of a label and a text."""
        names = [name for name in self._data.names("train") if not is_grammar(name)]
        return bool(names) and all(self._data.form_of(name, "lines") == "lines" for name in names)

    def read(self, names: Sequence[str]) -> Iterator[Example]:
        """Every example that can be used; the first that cannot is an error unless `data.skips_bad`."""
        for name in names:
            for place, example in self._read_one(name):
                if isinstance(example, Example):
                    yield example
                else:
                    self.leave_out(place, example)

    def leave_out(self, place: str, bad: BadLine) -> None:
        """Count an example that cannot be used, or end with an error that says why."""
        if not self._data.skips_bad:
            raise RegardError(
                f"{place} {bad.why} To leave out such examples and count them: --skip-bad (data.skips_bad)."
            )
        self.skipped[bad.kind] += 1

    def _read_one(self, name: str) -> Iterator[tuple[str, Example | BadLine]]:
        if is_grammar(name):
            if kind_of(name) != self._kind:
                raise RegardError(f"{name} has {kind_of(name)}, and {self._kind} are wanted here: take another name.")
            yield from ((example.place, example) for example in draw_examples(name))
            return
        if name == "-" or name.startswith(HUB) or (name in BUILTIN and not Path(name).exists()):
            raise RegardError(f"Labelled texts are read from files, not from '{name}'. Write them to a file first.")
        columns = Columns(self._data.text, self._data.second, self._data.label)  # type: ignore[arg-type]
        otherwise = {TAGS: "conll", ANSWERS: "squad"}.get(self._kind, "lines")
        for file in _find_files(name, self._data.encoding):
            yield from read_file(file, self._data.form_of(file.name, otherwise), self._kind, columns)


def _find_files(name: str, encoding: str) -> list[TextFile]:
    with tempfile.TemporaryDirectory() as spool:  # for what is no file, which was refused
        return resolve(name, DataConfig(train=name, format="text", encoding=encoding), Path(spool), cache_root())


def prepare_labelled(
    data: LabelledConfig,
    kind: str,
    tokenizer: TokenizerConfig,
    *,
    labels: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> PreparedLabelled:
    """Read, split and check labelled texts; `labels` are the classes that may come, None: those of training."""
    reader = LabelledReader(data, kind)
    train = list(reader.read(data.names("train")))
    if not train:
        raise RegardError(f"There are no examples in {', '.join(data.names('train'))}. Give some.")
    splits: dict[str, list[Example]] = {"train": train, "valid": [], "test": []}
    if data.part_valid or data.part_test:
        splits = _split(train, kind, data)
        if not splits["train"]:
            raise RegardError(
                f"{len(train):,} examples are too few to set some apart: none is left to learn from. Give more, or "
                "name files for the others: data.valid and data.test."
            )
    for name in ("valid", "test"):
        if named := data.names(name):
            splits[name] = list(reader.read(named))
    splits["train"] = splits["train"][: data.max_examples]
    if kind == CLASSES:
        _check_classes(splits, labels, reader)
    texts = (text for example in splits["train"] for text in example.texts)
    n_bytes = sum(len(text) for example in splits["train"] for text in example.texts)
    learned = train_tokenizer(tokenizer, take_evenly(texts, choose_part_to_learn_from(tokenizer, n_bytes)), progress)
    found = {name: tuple(examples) for name, examples in splits.items()}
    notes = _tell_unseen_tags(found) if kind == TAGS else ()
    return PreparedLabelled(
        learned, found["train"], found["valid"], found["test"], _hash(found, learned), dict(reader.skipped), notes
    )


def read_labelled(data: LabelledConfig, kind: str, labels: Sequence[str]) -> tuple[Examples, dict[str, int]]:
    """All examples that `data.train` names, none set apart, and what was left out of them, by kind."""
    reader = LabelledReader(data, kind)
    found = {"train": [], "test": list(reader.read(data.names("train")))}
    if kind == CLASSES:
        _check_classes(found, labels, reader)
    if not found["test"]:
        raise RegardError(f"There are no examples in {', '.join(data.names('train'))}. Give some.")
    return tuple(found["test"]), dict(reader.skipped)


def _split(examples: list[Example], kind: str, data: LabelledConfig) -> dict[str, list[Example]]:
    """Examples by split; those with the same texts, or questions about one passage, stay together."""
    shared = [example.texts[-1] if kind == ANSWERS else "\n".join(example.texts) for example in examples]
    key_of = {text: hash_key(text.encode(), data.split_seed) for text in dict.fromkeys(shared)}
    keys = np.array([key_of[text] for text in shared], dtype=np.uint64)
    way_out = "Give more, or name files for the others: data.valid and data.test."
    split = split_documents(keys, data.part_valid, data.part_test, "examples", way_out)
    return {
        name: [example for example, s in zip(examples, split, strict=True) if s == number]
        for number, name in enumerate(NAMES)
    }


def _check_classes(splits: dict[str, list[Example]], labels: Sequence[str] | None, reader: LabelledReader) -> None:
    """Refuse, or leave out, examples with a label that training does not have; and a column that holds no labels."""
    known = list(dict.fromkeys(str(example.label) for example in splits["train"])) if labels is None else list(labels)
    n = len(splits["train"])
    if labels is None and reader.reads_lines and len(known) > max(FEW_LINES, n / 2):
        raise RegardError(
            f"{reader.names} has no labels, it seems: the first word of each line is read as one, and {n:,} lines have "
            f"{len(known):,} different ones, '{known[0][:40]}' and '{known[1][:40]}' for example. {LABELLED_FORM}"
        )
    if labels is None and len(known) > max(MANY_LABELS, n // 4):
        raise RegardError(
            f"{n:,} training examples have {len(known):,} different labels, '{known[0][:40]}' for example: is that the "
            "column of labels? Set data.label and data.text; for numbers take --task rate."
        )
    if labels is None and len(known) < 2:
        raise RegardError(f"All training examples have the label '{known[0]}': there is nothing to tell apart.")
    allowed = set(known)
    for name, examples in splits.items():
        kept = []
        for example in examples:
            if example.label in allowed:
                kept.append(example)
                continue
            label, listed = str(example.label), ", ".join(sorted(known)[:10])
            where = "is not among head.labels" if name == "train" else "does not come in the training examples"
            why = f"has the label '{label[:40]}', which {where}.{nearest(label, known)} There are: {listed}."
            reader.leave_out(example.place, BadLine("unknown label", why))
        splits[name] = kept


def _tell_unseen_tags(splits: dict[str, Examples]) -> tuple[str, ...]:
    """A sentence where held-out words have tags that training never shows."""
    seen = {tag for example in splits["train"] for tag in example.label}  # type: ignore[union-attr]
    unseen: Counter[str] = Counter()
    for name in ("valid", "test"):
        unseen.update(tag for example in splits[name] for tag in example.label if tag not in seen)  # type: ignore
    if not unseen:
        return ()
    names = ", ".join(str(tag) for tag, _ in unseen.most_common(5))
    return (f"{unseen.total():,} held-out words have tags that training never shows ({names}): they count as wrong.",)


def _hash(splits: dict[str, Examples], tokenizer: Tokenizer) -> str:
    """What stands for the examples and how they are cut into tokens."""
    digest = hashlib.sha256(tokenizer.hash.encode())
    for name, examples in splits.items():
        digest.update(f"\n{name} {len(examples)}\n".encode())
        for example in examples:
            digest.update(repr((example.texts, example.label)).encode())
    return digest.hexdigest()[:32]
