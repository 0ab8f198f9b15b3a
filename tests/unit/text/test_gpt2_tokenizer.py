"""Tokenizers that were made for GPT-2 elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_gpt2 import END, TEXT, bpe, write_vocab_and_merges

from regard.data.config import DataConfig
from regard.data.prepared_text import prepare_text
from regard.errors import RegardError
from regard.text.config import TokenizerConfig
from regard.text.gpt2_tokenizer import read_vocab_and_merges
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_vocab_and_merges(tmp_path / "tok")
    return tmp_path / "tok"


def with_json(folder: Path, **changes: Any) -> Path:
    """A tokenizer.json with some of its parts changed."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(read_vocab_and_merges(folder)), **changes}))
    return path


def special(token: str, number: int, is_special: bool = True) -> dict[str, Any]:
    return {"id": number, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": is_special}  # fmt: skip


def test_the_end_mark_is_found_in_the_vocabulary(folder: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    assert (tokenizer.kind, tokenizer.eos, tokenizer.end_mark, tokenizer.vocab_size) == ("bpe", 299, END, 300)
    assert tokenizer.is_lossless
    ours = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=300), [TEXT])
    assert (ours.eos, ours.end_mark) == (0, "<eos>")


def test_documents_end_with_its_own_end_mark(folder: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    ids = tokenizer.encode_documents([("the cat", True), ("the", False), (" mat", True)])
    assert np.flatnonzero(ids == 299).tolist() == [len(tokenizer.encode("the cat")), len(ids) - 1]
    assert not (ids == 0).any()  # "!" is id 0
    assert tokenizer.decode(ids) == "the catthe mat"
    assert tokenizer.token_text(299) == END
    assert tokenizer.token_bytes(299) == b""


def test_token_zero_is_a_token_like_others(folder: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.encode("!").tolist() == [0]
    assert tokenizer.decode([0]) == "!"
    assert tokenizer.token_bytes(0) == b"!"


@pytest.mark.parametrize("is_listed", [False, True], ids=["vocabulary alone", "listed as special"])
def test_an_end_mark_that_the_text_spells_stays_text(folder: Path, is_listed: bool) -> None:
    if is_listed:
        with_json(folder, added_tokens=[special(END, 299)])
    tokenizer = Tokenizer.load(folder)
    ids = tokenizer.encode(f"a {END} b")
    assert 299 not in ids
    assert tokenizer.decode(ids) == f"a {END} b"
    assert tokenizer.encode_with_offsets(f"a {END} b")[0].tolist() == ids.tolist()


def test_special_tokens_beyond_the_vocabulary_become_entries_of_it(folder: Path) -> None:
    with_json(folder, added_tokens=[special(END, 299), special("[PAD]", 300), special("日本", 305)])
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.vocab_size == 306  # 301 to 304 are holes
    assert tokenizer.id_of("[PAD]") == 300
    assert (tokenizer.token_bytes(300), tokenizer.token_bytes(305), tokenizer.token_bytes(303)) == (
        b"[PAD]", "日本".encode(), b"",
    )  # fmt: skip
    tokenizer.save(folder / "again.json")
    assert Tokenizer.load(folder / "again.json").hash == tokenizer.hash


def test_added_tokens_of_the_older_form_are_read(folder: Path) -> None:
    (folder / "added_tokens.json").write_text('{"[PAD]": 300}')
    assert Tokenizer.load(folder).id_of("[PAD]") == 300


def test_a_vocabulary_without_all_bytes_is_known_to_lose_text(folder: Path) -> None:
    lacking = {token: i for i, token in enumerate(t for t in bpe(300)[0] if t != "~")}
    (folder / "vocab.json").write_text(json.dumps(lacking))
    tokenizer = Tokenizer.load(folder)
    assert not tokenizer.is_lossless
    assert tokenizer.decode(tokenizer.encode("a~b")) == "ab"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"added_tokens": [special("covid", 300, is_special=False)]}, r"added tokens that are searched for.*'covid'"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
         r"puts a space before every text.*Set add_prefix_space to false"),
    ],
)  # fmt: skip
def test_what_would_change_every_text_is_refused(folder: Path, changes: dict[str, Any], sentence: str) -> None:
    with_json(folder, **changes)
    with pytest.raises(RegardError, match=sentence):
        Tokenizer.load(folder)


def test_a_vocabulary_with_neither_end_mark_is_refused(folder: Path) -> None:
    vocab = {token: i for i, token in enumerate(bpe(300)[0]) if token != END}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    with pytest.raises(RegardError, match=r"neither by Regard nor for GPT-2.*<eos> as id 0, <\|endoftext\|> at any"):
        Tokenizer.load(folder)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("vocab.json", '{"a": 1', r"vocab\.json is not valid JSON"),
        ("vocab.json", "[1]", r"vocab\.json must hold a JSON object, not \[1\]"),
        ("vocab.json", '{"a": "b"}', r"must give every token a whole number, and gives 'a' 'b'"),
        (
            "merges.txt",
            "#version: 0.2\nt h\nt h e\n",
            r"merges\.txt, line 3, must be two tokens .* Copy merges\.txt again",
        ),
        ("merges.txt", "qq zz\n", r"is no tokenizer\.json that `tokenizers` can read"),
        ("merges.txt", None, r"has vocab\.json and no merges\.txt.* Copy merges\.txt there"),
    ],
)
def test_broken_files_are_named(folder: Path, name: str, content: str | None, sentence: str) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(RegardError, match=sentence):
        Tokenizer.load(folder)


def test_streams_on_disk_end_documents_with_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT * 40)
    data = DataConfig(train=str(tmp_path / "text.txt"), document="file", p_valid=0.0, p_test=0.0)
    prepared = prepare_text(data, TokenizerConfig(path=str(folder)), cache=tmp_path / "cache")
    ids = prepared.train[0 : len(prepared.train)]
    assert np.flatnonzero(ids == 299).tolist() == [len(ids) - 1]
