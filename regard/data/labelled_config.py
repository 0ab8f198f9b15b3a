"""Where labelled texts come from, and which of their columns are read. It imports nothing that is slow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from regard.data.config import check_parts
from regard.data.labelled_grammar import complete_name, name_held_out
from regard.data.pair_grammar import is_grammar
from regard.data.reading import COMPRESSED, ENCODING_DOC, UTF8, normalize_encoding
from regard.errors import RegardError
from regard.settings import Settings, setting

LABELLED_DOC = "files of labelled texts, or a name of the built-in grammar such as grammar:en-sentiment"
FORMS = ("tsv", "csv", "jsonl", "lines", "conll", "conllu", "squad")
NAMED_FORMS = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".conll": "conll", ".conllu": "conllu",
    ".json": "squad",
}  # fmt: skip
"""Forms that the end of a file's name tells."""
Sources = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LabelledConfig(Settings):
    """Texts with a label each: files for training, validation and test, or one source that is split."""

    train: str | tuple[str, ...] = setting(doc=LABELLED_DOC)
    valid: str | tuple[str, ...] | None = setting(None, "validation examples, as train; null: cut from train")
    test: str | tuple[str, ...] | None = setting(None, "test examples, as train; null: cut from train")
    p_valid: float = setting(0.1, "part of train that is set apart for validation where valid is null", low=0, high=0.9)
    p_test: float = setting(0.1, "part of train that is set apart for test where test is null", low=0, high=0.9)
    format: str = setting(
        "auto",
        "auto: by the end of the name (.tsv .csv .jsonl .conllu .json), else lines, for tags conll; lines: a label, a "
        "space, a text; conll: a word and its columns a line; squad: SQuAD's JSON",
        choices=("auto", *FORMS),
    )
    text: str | int | None = setting(
        None,
        "the column or field of the text: its name, or its number from 1; null: one called text, sentence or "
        "sentence1, else the first",
    )
    second: str | int | None = setting(None, "the column or field of a second text, as text; null: there is one text")
    label: str | int | None = setting(
        None,
        "the column or field of the label, as text; null: one called label, else the last; conllu: upos or xpos",
    )
    encoding: str = setting(UTF8, ENCODING_DOC)
    max_examples: int | None = setting(None, "use only the first so many training examples", low=1)
    skips_bad: bool = setting(
        False, "leave out examples that cannot be used, and count them, where else the first ends it"
    )
    split_seed: int = setting(0, "another seed gives another split", low=0, high=2**63 - 1)

    def check(self) -> None:
        object.__setattr__(self, "encoding", normalize_encoding(self.encoding))
        for name in ("text", "second", "label"):  # columns may be given by number
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else str(given))
        for split in ("train", "valid", "test"):
            names = self.names(split)
            if getattr(self, split) is not None and (not names or not all(names)):
                raise RegardError(f"{split} names no examples. Give {LABELLED_DOC}.")
        check_parts(self.part_valid, self.part_test)

    @property
    def n_texts(self) -> int:
        """How many texts an example has."""
        return 1 if self.second is None else 2

    def names(self, split: str) -> tuple[str, ...]:
        """What is read for a split; of the built-in grammar, its own held-out sentences where nothing else is named.

        >>> LabelledConfig(train="grammar:en-pos:500").names("test")
        ('grammar:en-pos:1000@test',)
        """
        given: Sources | None = getattr(self, split)
        if given is None:
            return tuple(name_held_out(name, split) for name in self._all_grammar())
        names = (given,) if isinstance(given, str) else given
        return tuple(complete_name(name, split) if is_grammar(name) else name for name in names)

    def _all_grammar(self) -> tuple[str, ...]:
        names = self.names("train")
        return names if all(map(is_grammar, names)) else ()

    @property
    def part_valid(self) -> float:
        """The part of the training examples that is set apart for validation."""
        return self.p_valid if self.valid is None and not self._all_grammar() else 0.0

    @property
    def part_test(self) -> float:
        return self.p_test if self.test is None and not self._all_grammar() else 0.0

    def form_of(self, name: str, otherwise: str) -> str:
        """How a file is written; `otherwise` is the form of names that do not tell it."""
        if self.format != "auto":
            return self.format
        path = PurePath(name)
        suffix = PurePath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
        return NAMED_FORMS.get(suffix, otherwise)
