"""Where pairs of texts come from: sentences and translations, or sentences and their trees."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from regard.data.config import check_parts
from regard.data.pair_grammar import complete_name, find_form, is_grammar, name_held_out
from regard.data.reading import COMPRESSED, ENCODING_DOC, UTF8, normalize_encoding
from regard.errors import RegardError
from regard.settings import Settings, setting

FORMS = ("files", "tsv", "csv", "jsonl", "trees")
NAMED_FORMS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".mrg": "trees"}
TREE_WORDS = ("slot", "tag", "bare")
PAIRS_DOC = (
    "two aligned files [train.en, train.de], one TSV (source TAB target), one CSV, one JSONL, or grammar:en-de, built "
    "in (grammar:en-trees for parsing); a list of such lists: several parts; a part may end with its tag, as in "
    "[train.en, train.de, <2de>]"
)
_TAG = re.compile(r"<[^<>\s]+>")

Given = str | tuple[str, ...] | tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class PairPart:
    """Files of one form: two that are aligned (`files`), or one that holds both sides (`tsv`, `jsonl`, `trees`)."""

    names: tuple[str, ...]
    form: str
    tag: str | None

    def held_out(self, split: str) -> PairPart:
        """The part of another split, where the built-in grammar writes it."""
        return PairPart(tuple(name_held_out(name, split) for name in self.names), self.form, self.tag)


@dataclass(frozen=True, kw_only=True)
class PairsConfig(Settings):
    """Pairs of a source and a target: one set that is split, or separate ones for training, validation and test.

    A pair set that is split is split by its sources: equal sources, whatever their targets, are never in two splits.
    """

    train: str | tuple[str, ...] | tuple[tuple[str, ...], ...] = setting(doc=PAIRS_DOC)
    valid: str | tuple[str, ...] | tuple[tuple[str, ...], ...] | None = setting(
        None, "validation pairs, as train; null: cut from train"
    )
    test: str | tuple[str, ...] | tuple[tuple[str, ...], ...] | None = setting(
        None, "test pairs, as train; null: cut from train"
    )
    p_valid: float = setting(0.05, "part of train that becomes validation pairs where valid is null", low=0, high=0.9)
    p_test: float = setting(0.05, "part of train that becomes test pairs where test is null", low=0, high=0.9)
    format: str = setting(
        "auto",
        "auto: two files are aligned line by line, one is JSON lines if it is named .jsonl, CSV if .csv, trees if "
        ".mrg, else TSV; "
        "trees: sentences and their bracketed trees, one a line or as treebanks write them",
        choices=("auto", *FORMS),
    )
    source_field: str | int = setting(
        "source",
        "the field of a JSON record, or the column of a TSV or CSV file, that holds the source: its name, or the "
        "column's number from 1",
    )
    target_field: str | int = setting("target", "the field or column that holds the target, as source_field")
    encoding: str = setting(UTF8, ENCODING_DOC)
    tree_words: str = setting(
        "slot",
        "trees: what stands for a word in the target; slot: XX; tag: its part of speech, which is learned too; bare: "
        "XX, in trees that have no parts of speech",
        choices=TREE_WORDS,
    )
    is_reversed: bool = setting(False, "swap the sides: what stands second is the source")
    tag: str | None = setting(
        None, "a token such as <2de> put before every source whose part has none of its own; it joins the vocabulary"
    )
    max_pairs: int | None = setting(None, "use only the first so many pairs of train", low=1)
    max_length: int | None = setting(None, "pairs with a side of more tokens than this are left out of training", low=1)
    skips_bad: bool = setting(
        False, "leave out lines that cannot be used, and count them, where else the first ends it"
    )
    split_seed: int = setting(0, "another seed gives another split", low=0, high=2**63 - 1)

    def check(self) -> None:
        object.__setattr__(self, "encoding", normalize_encoding(self.encoding))
        for name in ("source_field", "target_field"):  # columns may be given by number
            object.__setattr__(self, name, str(getattr(self, name)))
        forms = {part.form for name in ("train", "valid", "test") for part in self.parts(name)}
        if "trees" in forms:
            self._check_trees(forms)
        if self.tag is not None and not is_tag(self.tag):
            raise RegardError(f"tag must be written in angle brackets with no space, such as <2de>, not {self.tag!r}.")
        check_parts(self.part_valid, self.part_test)

    def _check_trees(self, forms: set[str]) -> None:
        if len(forms) > 1:
            others = ", ".join(sorted(forms - {"trees"}))
            raise RegardError(
                f"Some of these files hold trees and some do not ({others}): a run reads the one or the other. Set "
                "format to trees if all are trees."
            )
        if self.is_reversed:
            raise RegardError("is_reversed is true, but the words of a tree cannot be the target. Set it to false.")

    def notes(self) -> list[str]:
        forms = {part.form for name in ("train", "valid", "test") for part in self.parts(name)}
        why = {
            "p_valid": None if self.part_valid == self.p_valid else "validation pairs are named, or the grammar's own",
            "p_test": None if self.part_test == self.p_test else "test pairs are named, or the grammar's own",
            "split_seed": None if self.part_valid or self.part_test else "nothing is cut from train",
            "source_field": None if forms & {"jsonl", "tsv", "csv"} else "no file has fields or columns",
            "target_field": None if forms & {"jsonl", "tsv", "csv"} else "no file has fields or columns",
            "tree_words": None if "trees" in forms else "the targets are no trees",
        }
        changed = [name for name in why if getattr(self, name) != self.help_of(name).default]
        return [f"{name} changes nothing: {why[name]}." for name in changed if why[name] is not None]

    @property
    def has_trees(self) -> bool:
        """Whether the pairs are sentences and their trees."""
        return any(part.form == "trees" for part in self.parts("train"))

    @property
    def has_slots(self) -> bool:
        """Whether targets are trees that do not say the tags of their words."""
        return self.tree_words == "slot" and self.has_trees

    @property
    def part_valid(self) -> float:
        """The part of the training pairs that is cut off for validation."""
        return self.p_valid if self.valid is None and not self._all_grammar() else 0.0

    @property
    def part_test(self) -> float:
        return self.p_test if self.test is None and not self._all_grammar() else 0.0

    def parts(self, name: str) -> tuple[PairPart, ...]:
        """What `train`, `valid` or `test` names, part by part; nothing where it is null.

        >>> PairsConfig(train=("a.en", "a.de", "<2de>")).parts("train")
        (PairPart(names=('a.en', 'a.de'), form='files', tag='<2de>'),)
        """
        given: Given | None = getattr(self, name)
        if given is None:
            return tuple(part.held_out(name) for part in self._all_grammar())
        lists = [(given,)] if isinstance(given, str) else [given] if _is_flat(given) else given
        return tuple(part for names in lists for part in self._parts_of(tuple(names), name))  # type: ignore[arg-type]

    def _all_grammar(self) -> tuple[PairPart, ...]:
        """The training parts, where all of them are the built-in grammar's: what is held out is its own affair."""
        parts = self.parts("train")
        return parts if all(is_grammar(name) for part in parts for name in part.names) else ()

    def _parts_of(self, names: tuple[str, ...], where: str) -> list[PairPart]:
        tag = self.tag
        if names and is_tag(names[-1]):
            names, tag = names[:-1], names[-1]
        if not names or any(not name for name in names):
            raise RegardError(f"{where} names no pairs. Give {PAIRS_DOC}.")
        forms = [self._form_of(name, alone=len(names) == 1) for name in names]
        if "files" not in forms:
            whole = [complete_name(name, where) if is_grammar(name) else name for name in names]
            return [PairPart((name,), form, tag) for name, form in zip(whole, forms, strict=True)]
        if len(names) != 2 or any(is_grammar(name) for name in names):
            raise RegardError(
                f"{where} names {len(names)} {'file' if len(names) == 1 else 'files'} of lines: "
                f"{', '.join(names)}. Aligned files come in twos, the source and the target; for several such pairs "
                "write [[a.en, a.de], [b.en, b.de]], for one file with both sides set format to tsv or jsonl."
            )
        return [PairPart(names, "files", tag)]

    def _form_of_grammar(self, name: str) -> str:
        form = find_form(name)
        if self.format != "auto" and (form == "trees") != (self.format == "trees"):
            raise RegardError(
                f"format is {self.format}, and {name} names {'trees' if form == 'trees' else 'no trees'}. Leave format "
                "out: the built-in grammar writes trees where grammar:en-trees, de-trees or fr-trees is named."
            )
        return form

    def _form_of(self, name: str, alone: bool) -> str:
        if is_grammar(name):
            return self._form_of_grammar(name)
        if self.format != "auto":
            return self.format
        path = PurePath(name)
        suffix = PurePath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
        return NAMED_FORMS.get(suffix, "tsv" if alone else "files")


def is_tag(text: str) -> bool:
    """Whether `text` is written as a tag is.

    >>> is_tag("<2de>"), is_tag("train.de"), is_tag("<to german>")
    (True, False, False)
    """
    return _TAG.fullmatch(text) is not None


def _is_flat(given: tuple[str, ...] | tuple[tuple[str, ...], ...]) -> bool:
    return not given or isinstance(given[0], str)
