"""Where the text comes from and how it is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.data.reading import ENCODING_DOC, UTF8, normalize_encoding
from regard.errors import RegardError
from regard.settings import Settings, setting

SOURCE_DOC = "files, folders, globs, '-' for standard input, a built-in name, or hub:NAME[/CONFIG][@SPLIT]"

OF_ONE_SOURCE = ("valid", "test", "boundaries")
"""Settings that belong to the source they are given with, and go where another one is named."""


@dataclass(frozen=True, kw_only=True)
class DataConfig(Settings):
    """One source that is split, or separate sources for training, validation and test."""

    train: str | tuple[str, ...] = setting(doc=SOURCE_DOC)
    valid: str | tuple[str, ...] | None = setting(None, "validation text, as train; null: cut from train")
    test: str | tuple[str, ...] | None = setting(None, "test text, as train; null: cut from train")
    p_valid: float = setting(0.05, "part of train that becomes validation text where valid is null", low=0, high=0.9)
    p_test: float = setting(0.05, "part of train that becomes test text where test is null", low=0, high=0.9)
    document: str = setting(
        "auto",
        "what a document of text is; auto: a chapter or a story if fewer than 20 files have 20 of them, else a file",
        choices=("auto", "file", "line", "paragraph", "story", "chapter"),
    )
    boundaries: str | None = setting(
        None, "a .tsv or .csv with the columns start_byte and end_byte of every document in the one text file of train"
    )
    split: str = setting(
        "auto",
        "auto: whole documents are set apart, or stretches from all over a text of one or two; tail: the end of the "
        "text where there are fewer than 20 documents, which are files unless document says otherwise",
        choices=("auto", "tail"),
    )
    format: str = setting(
        "auto",
        "auto: files named .jsonl are JSON lines, .csv and .tsv tables with a header, others text",
        choices=("auto", "text", "jsonl", "csv", "tsv"),
    )
    field: str | int = setting("text", "the field of a JSON record, or the column of a table, that holds the text")
    encoding: str = setting(UTF8, ENCODING_DOC)
    max_bytes: int | None = setting(None, "use only the first so many bytes of the training source", low=1)
    split_seed: int = setting(0, "another seed gives another split by documents", low=0, high=2**63 - 1)

    younger: ClassVar[Mapping[str, Any]] = {"split": "tail"}

    def check(self) -> None:
        object.__setattr__(self, "encoding", normalize_encoding(self.encoding))
        object.__setattr__(self, "field", str(self.field))  # a column may be given by its number
        for name in ("train", "valid", "test"):
            given = getattr(self, name)
            if given is not None and (not given or any(not part for part in given)):
                raise RegardError(f"{name} names no source. Give {SOURCE_DOC}.")
        if self.boundaries is not None and (self.document not in ("auto", "file") or self.encoding != UTF8):
            raise RegardError(
                f"boundaries cuts a file of UTF-8 text into documents, and document is {self.document}, encoding "
                f"{self.encoding}. Leave out boundaries, or these two."
            )
        check_parts(self.part_valid, self.part_test)

    @property
    def part_valid(self) -> float:
        """The part of the training source that is cut off for validation."""
        return self.p_valid if self.valid is None else 0.0

    @property
    def part_test(self) -> float:
        return self.p_test if self.test is None else 0.0


def check_parts(p_valid: float, p_test: float) -> None:
    """Refuse to set so much aside that nothing is left to train on."""
    if p_valid + p_test > 0.95:
        raise RegardError(f"p_valid {p_valid:g} and p_test {p_test:g} leave under 5% for training. Make them smaller.")
