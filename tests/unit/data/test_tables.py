"""CSV and TSV files, encodings and line ends: what is read, what is noticed, what is refused."""

from __future__ import annotations

import gzip
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.data import tables
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.labelled_config import LabelledConfig
from regard.data.pair_source import PairReader, resolve_pairs
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import read_pairs
from regard.data.prepared_text import prepare_text
from regard.data.reading import BadLine, read_text_blocks
from regard.data.tables import read_rows
from regard.errors import RegardError
from regard.text.config import TokenizerConfig

EXPECTED = [("Go.", "Geh."), ("Hi there.", "Grüß Gott!")]


def read(
    tmp_path: Path, name: str, content: str | bytes, **settings: Any
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """The pairs of one file, and what was left out."""
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    data = PairsConfig(train=str(tmp_path / name), **settings)
    spool = tmp_path / "spool"
    spool.mkdir()
    reader = PairReader(data)
    parts = resolve_pairs(data, "train", spool, tmp_path / "cache")
    return [(pair.source, pair.target) for part in parts for pair in reader.pairs(part)], dict(reader.skipped)


def texts(tmp_path: Path, name: str, content: bytes, **settings: Any) -> list[str]:
    (tmp_path / name).write_bytes(content)
    return list(read_documents(DataConfig(train=str(tmp_path / name), **settings), cache=tmp_path / "cache"))


PAIRS = {
    "two columns": ("a.csv", "Go.,Geh.\nHi there.,Grüß Gott!\n", {}, {}),
    "a header": ("a.csv", "en,de\nGo.,Geh.\nHi there.,Grüß Gott!\n", {}, {"header": 1}),
    "the names that JSON has": ("a.csv", "id,target,source\n1,Geh.,Go.\n2,Grüß Gott!,Hi there.\n", {}, {"header": 1}),
    "columns by name": (
        "a.csv",
        "id,en,de\n1,Go.,Geh.\n2,Hi there.,Grüß Gott!\n",
        {"source_field": "en", "target_field": "de"},
        {"header": 1},
    ),
    "columns by number": (
        "a.tsv",
        "1\tGeh.\tGo.\n2\tGrüß Gott!\tHi there.\n",
        {"source_field": "3", "target_field": "2"},
        {},
    ),
    "numbers and a header": (
        "a.tsv",
        "id\tde\ten\n1\tGeh.\tGo.\n2\tGrüß Gott!\tHi there.\n",
        {"source_field": "3", "target_field": "2"},
        {"header": 1},
    ),
    "quotes, commas and line ends": ("a.csv", '"Go.","Geh."\n"Hi\nthere.","Grüß Gott!"\n', {}, {}),
    "semicolons": ("a.csv", "en;de\nGo.;Geh.\nHi there.;Grüß Gott!\n", {}, {"header": 1}),
    "Windows": ("a.csv", "\ufeffsource,target\r\nGo.,Geh.\r\nHi there.,Grüß Gott!\r\n", {}, {"header": 1}),
    "a header in TSV": ("a.tsv", "English\tGerman\nGo.\tGeh.\nHi there.\tGrüß Gott!\n", {}, {"header": 1}),
    "CSV under another name": ("a.txt", "Go.,Geh.\nHi there.,Grüß Gott!\n", {"format": "csv"}, {}),
    "quotes in TSV are text": ("a.tsv", "Go.\tGeh.\nHi there.\tGrüß Gott!\n", {}, {}),
}


@pytest.mark.parametrize("what", PAIRS)
def test_pairs_of_a_table(tmp_path: Path, what: str) -> None:
    name, content, settings, skipped = PAIRS[what]
    assert read(tmp_path, name, content, **settings) == (EXPECTED, skipped)


REFUSED = {
    "a header of three": (
        "a.csv",
        "id,en,de\n1,Go.,Geh.\n",
        {},
        r"a\.csv has 3 columns: id, en, de\. Set data\.source_field and data\.target_field to the names",
    ),
    "another name": (
        "a.csv",
        "id,english,de\n1,Go.,Geh.\n",
        {"source_field": "englisch", "target_field": "de"},
        r"has no column 'englisch'\. Did you mean 'english'\? Its first row is: id, english, de\. Set data\.so",
    ),
    "a number too large": ("a.tsv", "Go.\tGeh.\n", {"source_field": "1", "target_field": "3"}, "no column '3'.*1 to 2"),
    "CSV taken for TSV": (
        "a.txt",
        "Go.,Geh.\nHi.,Hallo.\n",
        {},
        r"a\.txt has no tabs, and 2 columns if it is CSV: 'Go\.,Geh\.'\. Set data\.format to csv",
    ),
    "one column": ("a.tsv", "Go.\nHi.\n", {}, r"a\.tsv has one column: 'Go\.'\. A row is source and target with a tab"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("skips_bad", [False, True])
def test_what_is_wrong_in_every_row_is_not_left_out(tmp_path: Path, what: str, skips_bad: bool) -> None:
    name, content, settings, message = REFUSED[what]
    with pytest.raises(RegardError, match=message) as caught:
        read(tmp_path, name, content, **settings, skips_bad=skips_bad)
    assert "--skip-bad" not in str(caught.value)


FAULTS = {
    "an open quote": (
        'Go.,Geh.\n"Hi,x\nHi there.,Grüß Gott!\n',
        "line 2 opens a quote that is not closed",
        "open quote",
    ),
    "a stray quote": ('Go.,Geh.\n"Hi"x,y\nHi there.,Grüß Gott!\n', "line 2 is not CSV: ',' expected after", "not CSV"),
    "too few columns": ("Go.,Geh.\nHi\nHi there.,Grüß Gott!\n", "line 2 has one column, and 1 and 2 are", "one column"),
    "an empty row": ("Go.,Geh.\n\nHi there.,Grüß Gott!\n", "line 2 is empty", "empty side"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_bad_row_is_an_error_with_its_line_or_is_counted(tmp_path: Path, what: str) -> None:
    content, message, kind = FAULTS[what]
    with pytest.raises(RegardError, match=message):
        read(tmp_path, "a.csv", content)
    (tmp_path / "spool").rename(tmp_path / "before")
    assert read(tmp_path, "a.csv", content, skips_bad=True) == (EXPECTED, {kind: 1})


def test_further_columns_of_a_tsv_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "regard"):
        assert read(tmp_path, "deu.txt", "Go.\tGeh.\tCC-BY\nHi there.\tGrüß Gott!\tCC-BY\n") == (EXPECTED, {})
    assert "deu.txt has 3 columns, of which the first 2 are read. To read others, set data.source_field" in caplog.text


def test_documents_of_a_table(tmp_path: Path) -> None:
    content = b'id,review\r\n1,"Good, and\r\nshort."\r\n2,\r\n3,Bad.\r\n'
    assert texts(tmp_path, "a.csv", content, field="review") == ["Good, and\nshort.", "Bad."]
    assert texts(tmp_path, "a.csv.gz", gzip.compress(content), field="review") == ["Good, and\nshort.", "Bad."]
    assert texts(tmp_path, "a.tsv", b"id\ttext\n1\tone\n2\ttwo\n") == ["one", "two"]
    assert texts(tmp_path, "a.csv", content, format="text") == [content.decode().replace("\r\n", "\n")]
    with pytest.raises(RegardError, match=r"no column 'text'.*first row is: id, review\. Set data\.field to the name"):
        texts(tmp_path, "a.csv", content)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig", "UTF8"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.reading.BLOCK", 3)  # characters lie across blocks
    text = "Grüße\nSüden\n"
    assert texts(tmp_path, "a.txt", text.encode(encoding), encoding=encoding) == [text]
    assert read(tmp_path, "a.tsv", "Grüße\tSüden\n".encode(encoding), encoding=encoding)[0] == [("Grüße", "Süden")]


@pytest.mark.parametrize("encoding", ["punycode", "Punycode", "idna", "unicode_escape", "raw-unicode-escape", "U7"])
@pytest.mark.parametrize("config", [DataConfig, PairsConfig, LabelledConfig])
def test_a_codec_in_which_no_file_is_written_is_refused(config: Any, encoding: str) -> None:
    with pytest.raises(RegardError, match=r"is for names or parts of programs, .* Give that of the file: utf-8"):
        config(train="a.txt", encoding=encoding)


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"good\n bad: \xff\n", "utf-8", r"byte 0xff at offset 11, line 2 .*Set data\.encoding to the file's encoding"),
        (b"good\n bad: \xff\n", "ascii", r"a\.txt is not ascii text: byte 0xff at offset 11 .*Set data\.encoding"),
        (
            "abc".encode("utf-16-le") + b"x",
            "utf-16-le",
            r"not utf-16-le text: byte 0x78 at offset 6 .*Set data\.encoding",
        ),
    ],
)
def test_a_byte_that_is_not_of_the_encoding_is_named(
    tmp_path: Path, content: bytes, encoding: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.data.reading.BLOCK", 4)
    with pytest.raises(RegardError, match=message):
        texts(tmp_path, "a.txt", content, encoding=encoding)


@pytest.mark.parametrize("block", [1, 4, 1000])
def test_line_ends_of_windows_are_read_as_line_ends(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\r\ntwo\r\n\rend\r")
    monkeypatch.setattr("regard.data.reading.BLOCK", block)
    assert "".join(read_text_blocks(path, "a.txt", has_crlf=True)) == "one\n\ntwo\n\rend\r"


def test_a_text_of_windows_trains_without_carriage_returns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one line\r\n" * 50)
    (tmp_path / "b.txt").write_bytes(b"one line\n" * 50)
    streams = [
        prepare_text(
            DataConfig(train=str(tmp_path / name)), TokenizerConfig(kind="byte"), cache=tmp_path / "cache"
        ).train
        for name in ("a.txt", "b.txt")
    ]
    assert streams[0].tokens.tolist() == streams[1].tokens.tolist()


def test_how_a_file_is_read_is_part_of_its_fingerprint(tmp_path: Path) -> None:
    """The names of the settings too: old fingerprints are those of plain UTF-8 text."""
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f"row {n},good {n}\n" for n in range(50)))
    found = {
        prepare_text(
            DataConfig(train=str(tmp_path / "a.csv"), **how), TokenizerConfig(kind="byte"), cache=tmp_path
        ).fingerprint
        for how in (
            {},
            {"field": "label"},
            {"format": "text"},
            {"encoding": "latin-1"},
            {"format": "tsv", "field": "1"},
        )
    }
    assert len(found) == 5


def test_a_header_of_uncommon_names_is_told_and_one_of_known_parts_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "who is there?,it is me\nwhere are you?,I am here\n"
    (tmp_path / "told.csv").write_text(f"query,answer\n{rows}")
    (tmp_path / "known.csv").write_text(f"en_text,de_text\n{rows}")
    (tmp_path / "words.csv").write_text("house,haus\ntree,baum\n")
    for name, n_rows in (("told", 3), ("known", 2), ("words", 2)):
        data = PairsConfig(train=str(tmp_path / f"{name}.csv"), p_valid=0, p_test=0)
        assert read_pairs(data, cache=tmp_path / "cache").counts.n_train == n_rows
    assert [record.message for record in caplog.records] == [
        f"{tmp_path}/told.csv begins with 'query,answer', which is read as a pair and looks like a header. If it is "
        "one, name its columns: --set data.source_field=query for example."
    ]


def test_the_example_of_a_column_is_the_one_with_the_text(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("id,body,lang\n1,a long text to read,en\n2,and another one,de\n")
    with pytest.raises(RegardError, match=r"--set data.field=body for example"):
        list(read_documents(DataConfig(train=str(tmp_path / "posts.csv")), cache=tmp_path / "cache"))


def test_no_character_is_looked_at_again_for_each_line_of_a_quote_that_never_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "MAX_LINE", 1000)
    lines = ["text,label", *['"', *[""] * 3000] * 3, "a,b", '"c', 'd",e']
    looked_at = 0

    def count(frame: object, event: str, called: object) -> None:
        nonlocal looked_at
        text = getattr(called, "__self__", None)
        if event == "c_call" and isinstance(text, str):
            looked_at += len(text)

    sys.setprofile(count)
    try:
        rows = list(read_rows(lines, ",", has_quotes=True))
    finally:
        sys.setprofile(None)
    n_characters = sum(map(len, lines)) + len(lines)
    assert [number for number, row in rows if isinstance(row, BadLine)] == [2, 3003, 6004]
    assert [row for _, row in rows if row and not isinstance(row, BadLine)] == [
        ["text", "label"], ["a", "b"], ["c\nd", "e"],
    ]  # fmt: skip
    assert looked_at < 10 * n_characters
