"""Every kind of source gives its documents, and every broken one says what is wrong and where."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import random
import sys
import threading
import types
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard

from regard.data.builtin import BUILTIN
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.pieces import PIECE, cut_file, cut_lines, cut_paragraphs, join_pieces, limit_bytes
from regard.errors import RegardError

TEXT = "Grüße aus dem Süden.\r\nsecond line\n\nlast"


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Documents of a source, with the working folder and the cache in a temporary place."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def go(source: str | tuple[str, ...], **settings: object) -> list[str]:
        return list(read_documents(DataConfig(train=source, **settings), cache=tmp_path / "cache"))

    return go


def compressed(kind: str, data: bytes) -> bytes:
    if kind == ".gz":
        return gzip.compress(data)
    if kind == ".xz":
        return lzma.compress(data)
    return zstandard.compress(data) if kind == ".zst" else data


@pytest.mark.parametrize("kind", ["", ".gz", ".xz", ".zst"])
def test_a_file_is_one_document_and_keeps_its_line_ends(read: Any, kind: str) -> None:
    Path(f"a.txt{kind}").write_bytes(compressed(kind, TEXT.encode()))
    assert read(f"a.txt{kind}") == [TEXT]


@pytest.mark.parametrize("kind", ["", ".gz", ".zst"])
def test_jsonl_gives_a_document_a_record(read: Any, kind: str) -> None:
    lines = "".join(json.dumps({"body": t, "n": 1}) + "\n" for t in ["one\ntwo", "", "drei €"])
    Path(f"a.jsonl{kind}").write_bytes(compressed(kind, lines.encode()))
    assert read(f"a.jsonl{kind}", field="body") == ["one\ntwo", "drei €"]
    assert read(f"a.jsonl{kind}", format="text") == [lines]


def test_several_files_come_in_the_order_given(read: Any) -> None:
    for name in "ab":
        Path(name).write_text(name)
    assert read(("b", "a")) == ["b", "a"]


def test_a_folder_gives_its_files_by_path_without_hidden_and_empty_ones(read: Any) -> None:
    for name in ("z.txt", "a/b.txt", ".hidden", ".git/x", "a/.y", "c.txt"):
        path = Path("books") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (Path("books") / "empty.txt").touch()
    assert read("books") == ["a/b.txt", "c.txt", "z.txt"]


def test_a_glob_gives_what_it_matches(read: Any) -> None:
    for name in ("b.txt", "a.txt", "c.md", "d/e.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    assert read("*.txt") == ["a.txt", "b.txt"]
    assert read("**/*.txt") == ["a.txt", "b.txt", "d/e.txt"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(read: Any) -> None:
    Path("a[1].txt").write_text("x")
    assert read("a[1].txt") == ["x"]


def test_standard_input_is_read_once(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert read("-") == [TEXT]
    with pytest.raises(RegardError, match="Standard input is empty, or was read before: it can be read only once"):
        read("-")


def test_a_terminal_is_not_waited_for(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(isatty=lambda: True))
    with pytest.raises(RegardError, match="'-' means standard input, and nothing is piped into it"):
        read("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_copied_before_it_is_read(read: Any) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text("through a pipe"))
    writer.start()
    assert read("pipe") == ["through a pipe"]
    writer.join()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_built_in_text_is_there_and_comes_in_the_same_order(read: Any, name: str) -> None:
    first = read(name)
    assert sum(map(len, first)) > 1_000_000
    assert len(first) > 100
    assert all(text.strip() for text in first)
    assert first == list(BUILTIN[name].documents())


def test_lines_and_paragraphs(read: Any) -> None:
    Path("a.txt").write_bytes(b"one\r\n\n  \ntwo\nthree\n\n\n\nfour")
    assert read("a.txt", document="line") == ["one", "two", "three", "four"]
    assert read("a.txt", document="paragraph") == ["one\r", "two\nthree", "four"]


def test_max_bytes_keeps_whole_lines_and_characters(read: Any) -> None:
    Path("a.txt").write_text("one\ntwo\nthree\n")
    assert read("a.txt", max_bytes=9) == ["one\ntwo\n"]
    assert read("a.txt", max_bytes=8) == ["one\ntwo\n"]
    assert read("a.txt", max_bytes=14) == read("a.txt", max_bytes=99) == ["one\ntwo\nthree\n"]
    Path("b.txt").write_text("äöü")
    assert read("b.txt", max_bytes=3) == ["ä"]


def test_a_byte_order_mark_is_dropped(read: Any) -> None:
    Path("a.txt").write_bytes(b"\xef\xbb\xbfabc")
    assert read("a.txt") == ["abc"]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_characters_across_blocks_stay_whole(read: Any, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.reading.BLOCK", cut)
    Path("a.txt").write_bytes("\ufeff€😀é\nx".encode())
    assert read("a.txt") == ["€😀é\nx"]


def test_the_place_of_a_bad_byte_counts_every_block(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.reading.BLOCK", 4)
    Path("a.txt").write_bytes("€€\n€".encode() + b"\xff")
    with pytest.raises(RegardError, match="byte 0xff at offset 10, line 2"):
        read("a.txt")


def pieces(text: str, size: int = 7) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def test_a_large_document_comes_in_pieces_cut_before_white_space() -> None:
    text = ("word " * 9 + "\n\n  indented " + "x" * 30 + "\n") * (3 * PIECE // 80)
    found = list(cut_file(pieces(text, 1000)))
    assert "".join(p.text for p in found) == text
    assert [p.ends for p in found] == [False] * (len(found) - 1) + [True]
    assert len(found) > 3
    assert max(len(p.text) for p in found) <= PIECE
    for before, after in pairwise(found):
        assert not before.text[-1].isspace()
        assert after.text[0].isspace()


def test_text_without_white_space_is_cut_at_last() -> None:
    found = list(cut_file(pieces("x" * (20 * PIECE), PIECE)))
    assert [len(p.text) // PIECE for p in found] == [1] * 20
    assert [p.ends for p in found] == [False] * 19 + [True]


def test_blocks_do_not_change_lines_or_paragraphs() -> None:
    text = "one two\n\nthree\nfour\n\n\nfive"
    for size in range(1, 12):
        assert list(join_pieces(cut_lines(pieces(text, size)))) == ["one two", "three", "four", "five"]
        assert list(join_pieces(cut_paragraphs(pieces(text, size)))) == ["one two", "three\nfour", "five"]


def test_limited_ends_its_last_document() -> None:
    found = list(limit_bytes(cut_file(["abc\ndef\nghi"]), 6))
    assert [(p.text, p.ends) for p in found] == [("abc\n", True)]


def fake_datasets(load: Any) -> types.ModuleType:
    module = types.ModuleType("datasets")
    module.load_dataset = load  # type: ignore[attr-defined]
    return module


def test_a_hub_set_gives_a_document_a_row(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    def load(name: str, config: str | None, split: str) -> Iterable[dict[str, Any]]:
        asked.append((name, config, split))
        if name == "owner/books/small" or (name == "wikitext/v2" and config is None):
            raise FileNotFoundError(f"{name} is not there")
        return [{"text": "one"}, {"text": ""}, {"text": None}, {"text": "zwei €"}]

    monkeypatch.setitem(sys.modules, "datasets", fake_datasets(load))
    assert read("hub:owner/books/small@validation") == ["one", "zwei €"]
    assert asked == [("owner/books", "small", "validation")]
    asked.clear()
    assert read("hub:wikitext/v2") == ["one", "zwei €"]
    assert asked == [("wikitext/v2", None, "train"), ("wikitext", "v2", "train")]
    with pytest.raises(RegardError, match=r"hub:books has no field 'txt'. Did you mean 'text'\? It has: text"):
        read("hub:books", field="txt")


@pytest.mark.slow
def test_rows_of_a_real_dataset_are_read(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["one", "two"], "n": [1, 2]})
    monkeypatch.setattr(datasets, "load_dataset", lambda name, config, split: made)
    assert read("hub:mine") == ["one", "two"]
    with pytest.raises(RegardError, match="hub:mine: field 'n' holds int, not text"):
        read("hub:mine", field="n")


def test_hub_without_the_package_or_the_network_says_what_to_do(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        RegardError, match=r"hub:books needs the package datasets. Install it: pip install 'regard\[hub\]'"
    ):
        read("hub:books")

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach the Hub\nand more")

    monkeypatch.setitem(sys.modules, "datasets", fake_datasets(offline))
    with pytest.raises(RegardError, match=r"hub:books cannot be loaded \(ConnectionError: Couldn't reach the Hub\)"):
        read("hub:books")
    monkeypatch.setitem(sys.modules, "datasets", fake_datasets(lambda *_, **__: [{"text": ""}]))
    with pytest.raises(RegardError, match="hub:books has no text in field 'text'"):
        read("hub:books")


BAD_FILES: list[tuple[str, bytes, str]] = [
    ("a.txt", b"", "a.txt is empty. Give a file that holds some text"),
    ("a.txt", b"good\nstill good\n bad: \xff\n", r"a.txt is not UTF-8 text: byte 0xff at offset 22, line 3"),
    ("a.txt", b"ends inside \xe2\x82", "byte 0xe2 at offset 12, line 1 .the file ends in the middle of a character"),
    ("a.txt", b"\x89PNG\r\n\x00\x00", "a.txt is a binary file, not text: it has a zero byte at offset 6"),
    ("a.txt", "hello".encode("utf-16"), "a.txt is UTF-16 text, not UTF-8. Set data.encoding to utf-16."),
    ("a.txt.gz", b"this is no gzip", "a.txt.gz is not packed in the way"),
    ("a.txt.gz", gzip.compress(b"hello" * 1000, mtime=0)[:-9], "a.txt.gz cannot be decompressed.*Is it complete"),
    ("a.txt.xz", b"this is no xz", "a.txt.xz is not packed in the way"),
    (
        "a.txt.xz",
        lzma.compress(random.Random(0).randbytes(3000).hex().encode())[:-40],
        "a.txt.xz cannot be decompressed",
    ),
    ("a.txt.zst", b"this is no zstandard", "a.txt.zst is not packed in the way"),
    ("a.jsonl", b'{"text": "one"}\n{"text": \n', "a.jsonl, line 2 is not JSON"),
    ("a.jsonl", b'{"txt": "one"}\n', r"a.jsonl, line 1 has no field 'text'. Did you mean 'txt'\? It has: txt"),
    ("a.jsonl", b'["one"]\n', "a.jsonl, line 1 is a JSON list, not an object with fields"),
    ("a.jsonl", b'{"text": 5}\n', "a.jsonl, line 1 holds int, not text, in its field 'text'"),
    ("a.jsonl", b'{"text": "\\ud800"}\n', r"a.jsonl, line 1 has a lone surrogate .* in its field 'text'"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES, ids=[message for *_, message in BAD_FILES])
def test_a_bad_file_is_named_with_the_place(read: Any, name: str, content: bytes, message: str) -> None:
    Path(name).write_bytes(content)
    with pytest.raises(RegardError, match=message):
        read(name)


def test_a_binary_file_in_a_folder_is_named_not_skipped(read: Any) -> None:
    Path("books").mkdir()
    Path("books/a.txt").write_text("text")
    Path("books/cover.png").write_bytes(b"\x89PNG\x00")
    with pytest.raises(RegardError, match=r"books/cover.png is a binary file.*glob such as 'folder/\*\*/\*.txt'"):
        read("books")


def test_what_is_missing_is_answered_with_the_nearest_name(read: Any) -> None:
    Path("train.txt").write_text("x")
    with pytest.raises(RegardError, match=r"no file, folder or built-in text 'tran.txt'. Did you mean 'train.txt'\?"):
        read("tran.txt")
    with pytest.raises(RegardError, match=r"Did you mean 'python-docs'\?"):
        read("python-dcos")
    with pytest.raises(
        RegardError, match=r"Built-in: python-docs, .*; pairs, for models that translate .*grammar:en-de"
    ):
        read("gramar:en-de")
    with pytest.raises(RegardError, match=r"There is no file 'no/where.txt': the folder no does not exist"):
        read("no/where.txt")
    with pytest.raises(RegardError, match=r"No file matches '\*.md'"):
        read("*.md")


def test_folders_without_text_are_refused(read: Any) -> None:
    Path("void").mkdir()
    Path("void/.hidden").write_text("x")
    with pytest.raises(RegardError, match="The folder void holds no files"):
        read("void")
    Path("void/empty.txt").touch()
    with pytest.raises(RegardError, match="There is no text in void: every file is empty"):
        read("void")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(read: Any) -> None:
    Path("a.txt").write_text("x")
    Path("a.txt").chmod(0)
    with pytest.raises(RegardError, match=r"a.txt cannot be read: permission denied"):
        read("a.txt")


def test_zst_without_its_package_says_what_to_install(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt.zst").write_bytes(zstandard.compress(b"x"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(RegardError, match=r"a.txt.zst needs the package zstandard"):
        read("a.txt.zst")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": ()}, "train names no source"),
        ({"train": "a", "valid": ""}, "valid names no source"),
        ({"train": "a", "p_valid": 0.5, "p_test": 0.5}, "p_valid 0.5 and p_test 0.5 leave under 5% for training"),
        ({"train": "a", "document": "files"}, "document must be one of auto, file, line, paragraph"),
        ({"train": 3}, "train must be text or list of text, not 3"),
    ],
)
def test_impossible_data_configs_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message.replace("|", r"\|")):
        DataConfig(**settings)
