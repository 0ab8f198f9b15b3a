"""Pairs from files: every form, and every fault with its file and line."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.data.pair_source import PairReader, resolve_pairs
from regard.data.pairs_config import PairsConfig
from regard.data.reading import MAX_LINE, BadLine, read_lines
from regard.errors import MissingTextError, RegardError

EXPECTED = [("Go.", "Geh."), ("Hi there.", "Grüß Gott!")]


def read(tmp_path: Path, **settings: Any) -> tuple[list[tuple[str, str]], dict[str, int]]:
    data = PairsConfig(**settings)
    spool = tmp_path / "spool"
    spool.mkdir()
    reader = PairReader(data)
    parts = resolve_pairs(data, "train", spool, tmp_path / "cache")
    return [(pair.source, pair.target) for part in parts for pair in reader.pairs(part)], dict(reader.skipped)


def written(tmp_path: Path, name: str, content: str | bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


FORMS = {
    "plain": ("Go.\nHi there.\n", "Geh.\nGrüß Gott!"),
    "spaces and carriage returns": ("\ufeffGo. \r\n Hi there.\r\n", "Geh.\r\nGrüß Gott!\t\r\n"),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_aligned_files(tmp_path: Path, name: str, suffix: str, pack: Any) -> None:
    source, target = (pack(text.encode()) for text in FORMS[name])
    given = (written(tmp_path, f"a.en{suffix}", source), written(tmp_path, f"a.de{suffix}", target))
    assert read(tmp_path, train=given) == (EXPECTED, {})


def test_one_tsv_whose_further_columns_are_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "deu.txt", "Go.\tGeh.\tCC-BY\n Hi there. \tGrüß Gott!\n")
    assert read(tmp_path, train=path)[0] == EXPECTED


def test_one_jsonl_whose_line_ends_inside_a_text_are_spaces(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"en": "Go.", "de": "Geh."}\n{"en": "Hi\\nthere.", "de": "Grüß Gott!"}\n')
    assert read(tmp_path, train=path, source_field="en", target_field="de")[0] == EXPECTED


def test_sides_can_be_swapped(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "Go.\tGeh.\n")
    assert read(tmp_path, train=path, is_reversed=True)[0] == [("Geh.", "Go.")]


def test_globs_of_aligned_files_are_paired_in_order(tmp_path: Path) -> None:
    for name, text in (("1.en", "a"), ("2.en", "b"), ("1.de", "x"), ("2.de", "y")):
        written(tmp_path, name, text)
    given = (str(tmp_path / "*.en"), str(tmp_path / "*.de"))
    assert read(tmp_path, train=given)[0] == [("a", "x"), ("b", "y")]
    written(tmp_path, "3.en", "c")
    (tmp_path / "spool").rename(tmp_path / "before")
    with pytest.raises(RegardError, match=r"come in twos, and '.*\*.en' stands for 3 files and '.*\*.de' for 2\. Name"):
        read(tmp_path, train=given)


LONG = "x" * (MAX_LINE + 1)
# what is wrong: the form, the files, the message, and its kind where such lines are counted
FAULTS: dict[str, tuple[dict[str, str | bytes], str, str]] = {
    "the source ends first": (
        {"a.en": "one\ntwo\n", "a.de": "eins\nzwei\ndrei\nvier\n"},
        r"a\.en ends after line 2, and .*a\.de has 4 lines: line i of one must belong to line i of the other",
        "no partner",
    ),
    "the target ends first": (
        {"a.en": "one\ntwo\nthree\n", "a.de": "eins\nzwei\n"},
        r"a\.de ends after line 2, and .*a\.en has 3 lines",
        "no partner",
    ),
    "an empty source": (
        {"a.en": "one\n\ntwo\n", "a.de": "eins\nx\nzwei\n"},
        r"a\.en, line 2 has an empty source\. Every pair needs a source and a target\..*--skip-bad \(data\.skips_bad\)",
        "empty side",
    ),
    "an empty target": (
        {"a.en": "one\nx\ntwo\n", "a.de": "eins\n \t\nzwei\n"},
        r"a\.de, line 2 has an empty target",
        "empty side",
    ),
    "an empty line": ({"a.en": "one\n\ntwo\n", "a.de": "eins\n\nzwei\n"}, r"a\.en, line 2 is empty", "empty side"),
    "a long line": (
        {"a.en": f"one\nx\n{LONG}\ntwo", "a.de": f"eins\n{LONG}\nx\nzwei"},
        r"a\.de, line 2 has 100,001 characters; at most 100,000 characters are read",
        "too long",
    ),
    "broken UTF-8": (
        {"a.en": b"one\nf\xfcr\ntwo\n", "a.de": "eins\nx\nzwei\n"},
        r"a\.en, line 2 is not UTF-8 text: byte 0xfc at its byte 2 .*Set data\.encoding",
        "broken UTF-8",
    ),
    "one column": (
        {"a.tsv": "one\teins\nx\ntwo\tzwei\n"},
        r"a\.tsv, line 2 has one column, and 1 and 2 are wanted, with TAB between columns\.",
        "one column",
    ),
    "an empty column": ({"a.tsv": "one\teins\nx\t\ntwo\tzwei\n"}, r"line 2 has an empty target", "empty side"),
    "an empty first column": ({"a.tsv": "one\teins\n\tx\ntwo\tzwei\n"}, r"line 2 has an empty source", "empty side"),
    "no JSON": (
        {"a.jsonl": '{"source": "one", "target": "eins"}\n{"source"\n{"source": "two", "target": "zwei"}\n'},
        r"a\.jsonl, line 2 is not JSON: .*JSONL has one JSON object a line",
        "not JSON",
    ),
    "no object": (
        {"a.jsonl": '{"source": "one", "target": "eins"}\n["x", "y"]\n{"source": "two", "target": "zwei"}\n'},
        r"line 2 is a JSON list, not an object",
        "not JSON",
    ),
    "no field": (
        {
            "a.jsonl": '{"source": "one", "target": "eins"}\n{"source": "x", "targt": "y"}\n'
            '{"source": "two", "target": "zwei"}'
        },
        r"line 2 has no field 'target'\. Did you mean 'targt'\? It has: source, targt\. Set data\.target_field",
        "no field",
    ),
    "a number": (
        {
            "a.jsonl": '{"source": "one", "target": "eins"}\n{"source": 2, "target": "y"}\n'
            '{"source": "two", "target": "zwei"}'
        },
        r"line 2 holds int, not text, in its field 'source'\. Set data\.source_field",
        "no field",
    ),
    "half a surrogate pair": (
        {
            "a.jsonl": '{"source": "one", "target": "eins"}\n{"source": "\\ud800", "target": "y"}\n'
            '{"source": "two", "target": "zwei"}'
        },
        r"line 2 has a lone surrogate '\\ud800' in its field 'source'",
        "broken UTF-8",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_an_error_with_its_place_or_is_counted(tmp_path: Path, fault: str) -> None:
    files, message, kind = FAULTS[fault]
    paths = tuple(written(tmp_path, name, content) for name, content in files.items())
    with pytest.raises(RegardError, match=message):
        read(tmp_path, train=paths)
    (tmp_path / "spool").rename(tmp_path / "before")
    pairs, skipped = read(tmp_path, train=paths, skips_bad=True)
    assert pairs == [("one", "eins"), ("two", "zwei")]
    n_bad = 2 if fault in ("the source ends first", "a long line") else 1
    assert skipped == {kind: n_bad}


def test_a_line_without_end_is_never_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.reading.BLOCK", 1000)
    monkeypatch.setattr("regard.data.reading.MAX_LINE", 100)
    longest = 0

    def watched(line: bytes) -> str | BadLine:
        nonlocal longest
        longest = max(longest, len(line))
        return decoded(line)

    from regard.data.reading import _decode_line as decoded

    monkeypatch.setattr("regard.data.reading._decode_line", watched)
    path = tmp_path / "a"
    path.write_bytes(b"ok\n" + b"x" * 50_000 + b"\n" + b"y" * 100 + b"\nend")
    lines = list(read_lines(path, "a"))
    assert [line if isinstance(line, str) else line.kind for line in lines] == ["ok", "too long", "y" * 100, "end"]
    assert longest <= 400 + 1 + 1000


@pytest.mark.parametrize("name", ["hub:wmt14", "python-docs"])
def test_what_holds_no_pairs_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RegardError, match=f"Pairs are read from files, not from {name}"):
        read(tmp_path, train=name)


def test_pairs_may_come_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Go.\tGeh.\nHi there.\tGrüß Gott!\n".encode())))
    assert read(tmp_path, train="-")[0] == EXPECTED


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingTextError, match=r"There is no file.*a\.en"):
        read(tmp_path, train=(str(tmp_path / "a.en"), str(tmp_path / "a.de")))
