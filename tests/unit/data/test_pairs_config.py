"""What may be named as pairs, and how it is understood."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from regard.data.pairs_config import PairPart, PairsConfig
from regard.errors import RegardError


@pytest.mark.parametrize(
    ("given", "settings", "expected"),
    [
        (("a.en", "a.de"), {}, [PairPart(("a.en", "a.de"), "files", None)]),
        (("a.en.gz", "a.de.gz", "<2de>"), {}, [PairPart(("a.en.gz", "a.de.gz"), "files", "<2de>")]),
        ("deu.txt", {}, [PairPart(("deu.txt",), "tsv", None)]),
        ("a.jsonl.zst", {}, [PairPart(("a.jsonl.zst",), "jsonl", None)]),
        ("a.txt", {"format": "jsonl"}, [PairPart(("a.txt",), "jsonl", None)]),
        (("a.tsv", "b.tsv"), {}, [PairPart(("a.tsv",), "tsv", None), PairPart(("b.tsv",), "tsv", None)]),
        (
            (("a.en", "a.de", "<2de>"), ("b.tsv", "<2fr>"), ("c.en", "c.cs")),
            {"tag": "<2cs>"},
            [
                PairPart(("a.en", "a.de"), "files", "<2de>"),
                PairPart(("b.tsv",), "tsv", "<2fr>"),
                PairPart(("c.en", "c.cs"), "files", "<2cs>"),
            ],
        ),
    ],
)
def test_forms_are_told_by_names_and_numbers(given: Any, settings: dict[str, Any], expected: list[PairPart]) -> None:
    config = PairsConfig(train=given, **settings)
    assert list(config.parts("train")) == expected
    assert config.parts("valid") == ()
    assert PairsConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": []}, r"train names no pairs\. Give two aligned files"),
        ({"train": ["a.en", ""]}, "train names no pairs"),
        ({"train": ["<2de>"]}, "train names no pairs"),
        ({"train": "a", "valid": [["a.en"], []]}, "valid names no pairs"),
        (
            {"train": ["a", "b", "c"]},
            r"train names 3 files of lines: a, b, c.*write \[\[a.en, a.de\], \[b.en, b.de\]\]",
        ),
        ({"train": "a", "format": "files"}, r"train names 1 file of lines: a\. .*set format to tsv or jsonl"),
        ({"train": "a", "tag": "to german"}, "tag must be written in angle brackets.*such as <2de>, not 'to german'"),
        ({"train": "a", "p_valid": 0.5, "p_test": 0.5}, "leave under 5% for training"),
        ({"train": "a", "format": "xml"}, "format must be one of auto, files, tsv, csv, jsonl"),
        ({"train": "a", "encoding": "utf-9"}, "encoding 'utf-9' is not known. Did you mean 'utf-8'"),
        ({"train": "a", "encoding": "rot13"}, "encoding 'rot13' is not known"),
        ({"train": "a", "skip_bad": True}, "Unknown key 'data.skip_bad'.*Did you mean 'data.skips_bad'"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        PairsConfig.from_dict(settings, "data")


def test_the_config_needs_neither_torch_nor_numpy() -> None:
    code = "import sys, regard.data.pairs_config; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
