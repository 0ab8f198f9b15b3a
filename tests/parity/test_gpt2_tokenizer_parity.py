"""Ids of a tokenizer made for GPT-2 against `transformers`' own."""

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from tiny_gpt2 import END, TEXT, write_hf_tokenizer, write_vocab_and_merges

from regard.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers")

STRINGS = [
    "", " ", "  ", "a", " a", "a ", "\n", "\n\n", "\t\tx", "I'll they'VE we're", "x1²³ ½a\u0301", "日本語 😀👩‍👧 مرحبا",
    "   three   spaces   ", "\r\nend\r\n", "\x00\x1c\x85\xa0\u3000\u200b\ufeff", "<eos> <|endoftext", "don't 'tis",
    "3.14159 2,026", TEXT,
]  # fmt: skip


@pytest.fixture(scope="module", params=["tokenizer.json", "vocab.json"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, object]:
    folder = tmp_path_factory.mktemp("tokenizer")
    theirs = write_hf_tokenizer(folder / "theirs")
    if request.param == "vocab.json":
        write_vocab_and_merges(folder / "older")
    return Tokenizer.load(folder / ("theirs" if request.param == "tokenizer.json" else "older")), theirs


@pytest.mark.parametrize("text", STRINGS)
def test_ids_equal_hugging_faces(pair: tuple[Tokenizer, object], text: str) -> None:
    ours, theirs = pair
    assert ours.encode(text).tolist() == theirs.encode(text)  # type: ignore[attr-defined]
    assert ours.decode(ours.encode(text)) == text


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ids_of_any_text_equal_hugging_faces(pair: tuple[Tokenizer, object], text: str) -> None:
    ours, theirs = pair
    if END not in text:
        assert ours.encode(text).tolist() == theirs.encode(text)  # type: ignore[attr-defined]
        assert ours.encode_with_offsets(text)[0].tolist() == ours.encode(text).tolist()
        assert ours.decode(ours.encode(text)) == text


def test_saved_by_us_it_loads_there_with_the_same_ids(pair: tuple[Tokenizer, object], tmp_path: Path) -> None:
    ours, theirs = pair
    ours.save(tmp_path)
    again = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert again.encode(TEXT) == theirs.encode(TEXT)  # type: ignore[attr-defined]
    assert Tokenizer.load(tmp_path).hash == ours.hash
