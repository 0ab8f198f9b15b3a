"""What a document is: chapters, stories, files, and what a table of bytes says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.data.config import DataConfig
from regard.data.documents import choose_document, read_documents
from regard.data.prepared_text import PreparedText, prepare_text
from regard.data.source import TextFile
from regard.errors import RegardError
from regard.text.config import TokenizerConfig

BODY = "It was a dark and stormy night, and nobody was abroad.\n" * 12


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return lambda name, text: (tmp_path / name).write_text(text, encoding="utf-8")


def read(train: str = "book.txt", **settings: Any) -> list[str]:
    return list(read_documents(DataConfig(train=train, **settings)))


def prepare(**settings: Any) -> PreparedText:
    return prepare_text(DataConfig(train="book.txt", **settings), TokenizerConfig(kind="byte"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("CHAPTER I.", "CHAPTER II. In which it rains"),
        ("Chapter the First", "Chapter the Second"),
        ("CHAPTER ONE", "CHAPTER TWENTY-TWO: Home"),
        ("1. Kapitel", "Zweites Kapitel"),
        ("Kapitel 1", "Kapitel 2: Der Sturm"),
        ("CHAPITRE PREMIER", "Chapitre II"),
        ("I.", "XIV"),
    ],
)
def test_headings_begin_chapters(first: str, second: str, write: Any) -> None:
    chapters = [f"{first}\n\n{BODY}\n", f"{second}\n\n{BODY}"]
    write("book.txt", "".join(chapters))
    assert read(document="chapter") == chapters


@pytest.mark.parametrize(
    "line",
    [
        "Chapter after chapter he read on.",
        "chapter 3 of the book, which nobody had read, says otherwise and goes on" * 2,
        "The last chapter",
        "I went home.",
    ],
)
def test_sentences_begin_no_chapter(line: str, write: Any) -> None:
    write("book.txt", f"{BODY}\n{line}\n\n{BODY}")
    assert len(read(document="chapter")) == 1


def test_a_list_of_contents_and_a_line_in_a_paragraph_begin_no_chapter(write: Any) -> None:
    contents = "".join(f"CHAPTER {number}\n\n" for number in ("I", "II", "III"))
    chapters = [f"A NOVEL\n\n{contents}{BODY}\n", f"CHAPTER II\n\n{BODY}CHAPTER III is a good one.\n{BODY}"]
    write("book.txt", "".join(chapters))
    assert read(document="chapter") == chapters


def test_markdown_has_chapters_by_its_headings_but_for_those_in_code(write: Any) -> None:
    chapters = [f"# One\n{BODY}", f"## Two\n{BODY}```\n# a comment\n{BODY}```\n", f"# Three\n### Small\n{BODY}"]
    write("book.md", "".join(chapters))
    write("book.txt", "".join(chapters))
    assert read("book.md", document="chapter") == chapters
    assert len(read("book.txt", document="chapter")) == 1


def test_stories_are_parted_by_two_blank_lines_and_nothing_is_lost(write: Any) -> None:
    stories = ["\n\n\nOne.\n\nMore.\n\n\n", "Two.\n \n\t\n\n", "Three.\n"]
    write("book.txt", "".join(stories))
    assert read(document="story") == stories


def test_one_file_of_many_chapters_is_cut_into_these_and_says_so(write: Any) -> None:
    write("book.txt", "".join(f"CHAPTER {i}\n\nIt is {i}.\n{BODY}\n\n\n" for i in range(1, 41)))
    found = prepare()
    assert found.document == "chapter"
    assert found.notes == ("1 file, cut into 40 chapters; data.document: file keeps it whole.",)
    assert (found.train.n_documents, found.valid.n_documents, found.test.n_documents) == (36, 2, 2)
    assert prepare().notes == found.notes  # from the cache
    assert prepare(document="chapter").fingerprint == found.fingerprint
    assert prepare(document="story").fingerprint != found.fingerprint
    assert prepare(document="file").document == "file"


def test_one_file_of_many_stories_is_cut_into_these(write: Any) -> None:
    write("book.txt", "".join(f"It is {i}.\n{BODY}\n\n" for i in range(1, 41)))
    assert prepare().notes == ("1 file, cut into 40 stories; data.document: file keeps it whole.",)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"CHAPTER {i}\n\n{BODY}\n" for i in range(1, 10)),  # few chapters
        "".join(f"x = {i}\n\n\n" for i in range(100)),  # no stories
        "".join(f"CHAPTER {i}\n\n{BODY}\n" for i in range(1, 30)) + 30 * BODY,  # one fills half of the text
        "word " * 4000,
    ],
)
def test_a_text_of_few_or_odd_parts_stays_whole_and_is_held_out_in_stretches(text: str, write: Any) -> None:
    write("book.txt", text)
    found = prepare()
    assert found.document == "file"
    assert "data.split: tail" in found.notes[0]
    assert (found.valid.n_documents, found.test.n_documents) == (1, 1) or "stretches each" in found.notes[0]
    assert prepare(document="file").fingerprint == found.fingerprint
    assert prepare(split="tail").notes == ()


def test_a_table_of_bytes_says_where_documents_are(write: Any) -> None:
    write("book.txt", "Übermut\nzwei\nrest\n")
    write("books.tsv", "start_byte\ttitle\tend_byte\n0\tA\t9\n9\tB\t14\n\n")
    write("books.csv", 'end_byte,start_byte\n9,"0"\n19,14\n')
    assert read(boundaries="books.tsv") == ["Übermut\n", "zwei\n"]
    assert read(boundaries="books.csv") == ["Übermut\n", "rest\n"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("start_byte\tend_byte\n0\t99\n", "from byte 0 to 99, and book.txt has 14 bytes"),
        ("start_byte\tend_byte\n0\t1\n", "inside a character"),
        ("start_byte\tend_byte\n0\t9\n2\t14\n", "line 3: bytes 2 to 14 are no document after the one before"),
        ("start_byte\tend_byte\n0\tend\n", "line 2 has no whole numbers"),
        ("from\tto\n0\t9\n", "needs the columns start_byte and end_byte"),
    ],
)
def test_a_table_that_does_not_fit_says_why(rows: str, message: str, write: Any) -> None:
    write("book.txt", "Übermut\nzwei\n")
    write("books.tsv", rows)
    with pytest.raises(RegardError, match=message):
        read(boundaries="books.tsv")


def test_boundaries_need_one_text_file(write: Any) -> None:
    write("a.txt", BODY)
    write("books.tsv", "start_byte\tend_byte\n0\t9\n")
    with pytest.raises(RegardError, match="cuts one text file"):
        list(read_documents(DataConfig(train=("a.txt", "a.txt"), boundaries="books.tsv")))
    with pytest.raises(RegardError, match="There is no file 'none'"):
        read("a.txt", boundaries="none")
    with pytest.raises(RegardError, match="boundaries cuts a file of UTF-8 text"):
        DataConfig(train="a.txt", boundaries="books.tsv", document="line")


@pytest.mark.parametrize(
    ("old", "new"), [('"chapter"', '"chaptes"'), ('"chapter"', '"story"'), ('ments": 30', 'ments": 31'), ("{", "[")]
)
def test_a_damaged_note_of_what_was_found_is_made_again(old: str, new: str, write: Any, tmp_path: Path) -> None:
    write("book.txt", "".join(f"CHAPTER {i}.\n\n{BODY}\n" for i in range(1, 31)))
    data, files = DataConfig(train="book.txt"), [TextFile(tmp_path / "book.txt", "book.txt")]
    found = choose_document(files, data, tmp_path)
    assert (found.document, found.n_documents) == ("chapter", 30)
    (note,) = (tmp_path / "documents").iterdir()
    whole = note.read_text()
    assert old in whole
    note.write_text(whole.replace(old, new))
    assert choose_document(files, data, tmp_path) == found
    assert note.read_text() == whole
