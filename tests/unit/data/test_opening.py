"""Where a text without a prompt begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.config import DataConfig
from regard.data.opening import encode_opening, find_opening
from regard.data.prepared_text import prepare_text
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

NOVEL = "It was cold. It was late.\nNo one came.\n\n" * 40


def tokenizer_of(kind: str) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=300 if kind == "bpe" else None), [NOVEL])


def opening_of(text: str, tmp_path: Path, kind: str = "char", document: str = "auto") -> str:
    (tmp_path / "my.txt").write_text(text)
    data = DataConfig(train=str(tmp_path / "my.txt"), document=document)
    prepared = prepare_text(data, TokenizerConfig(kind=kind, vocab_size=None), cache=tmp_path)
    return find_opening(prepared.train, prepared.tokenizer)


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        (NOVEL, "\n\n"),
        (NOVEL.replace("\n\n", "\n"), "\n"),
        (NOVEL.replace("\n", " "), ". "),
        (NOVEL.replace("\n", " ").replace(".", ""), " "),
        (NOVEL.replace("\n", "").replace(".", "").replace(" ", ""), ""),
    ],
    ids=["paragraphs", "lines", "sentences", "words", "nothing"],
)
def test_one_document_is_begun_at_the_largest_break_it_has(text: str, opening: str, tmp_path: Path) -> None:
    assert opening_of(text, tmp_path) == opening


def test_many_documents_are_begun_where_documents_begin(tmp_path: Path) -> None:
    lines = "".join(f"Line {n} is a document.\n" for n in range(60))
    assert opening_of(lines, tmp_path, document="line") == ""


def test_for_words_every_line_end_is_the_end_mark(tmp_path: Path) -> None:
    assert opening_of(NOVEL, tmp_path, kind="word") == ""


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
def test_a_break_has_the_ids_it_has_in_running_text(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    ids = encode_opening("\n\n", tokenizer)
    assert tokenizer.decode(ids) == "\n\n"
    assert ids.tolist() == [tokenizer.encode("a\nA").tolist()[1]] * 2


def test_a_small_context_keeps_the_end_of_the_break() -> None:
    tokenizer = tokenizer_of("char")
    assert tokenizer.decode(encode_opening(". ", tokenizer, 1)) == " "
    assert len(encode_opening("\n\n", tokenizer, 0)) == 0
    assert len(encode_opening("", tokenizer)) == 0
