"""Any text at all: round trips, agreement with Hugging Face, cuts that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.data.pieces import cut_file
from regard.text.config import KINDS, TokenizerConfig
from regard.text.encoding import Ids, UnitEncoder, gigatoken_encode
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.units import count_words, last_cut, split_units, split_words

LEARNED_FROM = (
    "The cat's mat, the dog's bone: they've 12 cats; you'll see 345 dogs.\n\n  Naïve café — 日本語 ΣΑΣ x_y(z)\n" * 3
)

odd = st.sampled_from(list("\t\n\x0b\x0c\r \x1c\x1f\x85\xa0\u2003\u200b\u2028\u3000\ufeff'’sStTaé12.,_(<>#日😀\u0301"))
texts = st.one_of(
    st.text(),
    st.text(odd, max_size=40),
    st.lists(st.sampled_from(["the", " cat", "'s", "  ", "\n", "<eos>", "<unk>", "<0x41>", "##s", "É"])).map("".join),
)


@cache
def made(kind: str, lowercase: bool) -> Tokenizer:
    size = {"bpe": 320, "wordpiece": 150}.get(kind)
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=size, lowercase=lowercase), [LEARNED_FROM])


VARIANTS = [(kind, False) for kind in KINDS] + [("word", True), ("wordpiece", True)]


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
@given(text=texts)
@settings(max_examples=150)
def test_lossless_tokenizers_give_any_text_back(kind: str, text: str) -> None:
    tokenizer = made(kind, False)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.token_bytes(int(i)) for i in ids) == text.encode()
    assert 0 not in ids


@pytest.mark.parametrize(("kind", "lowercase"), VARIANTS)
@given(text=texts)
@example(text="ΣΑΣ İ ẞ")
@settings(max_examples=150)
def test_ids_are_those_of_huggingface(kind: str, lowercase: bool, text: str) -> None:
    tokenizer = made(kind, lowercase)
    assert tokenizer.encode(text).tolist() == tokenizer.hf.encode(text).ids


def by_units(tokenizer: Tokenizer) -> Callable[[str], Ids]:
    encoder = UnitEncoder(tokenizer.hf, split_units, tokenizer.eos, glue="")
    return lambda text: encoder([(text, False)])


def by_gigatoken(tokenizer: Tokenizer) -> Callable[[str], Ids]:
    pytest.importorskip("gigatoken")
    encode = gigatoken_encode(tokenizer.hf)
    assert encode is not None
    return encode


@pytest.mark.parametrize("encode_with", [by_units, by_gigatoken])
@given(text=texts, n_merges=st.sampled_from([0, 3, 63, 400]))
@example(text="x" * 5000 + " " * 300 + "\n" * 300, n_merges=400)
@example(text="don't DON'T 'S 'll'LL 're'vE ſ's", n_merges=63)
@settings(max_examples=300)
def test_both_encoders_of_bpe_give_the_ids_of_huggingface(encode_with, text: str, n_merges: int) -> None:
    tokenizer, encode = made_bpe(n_merges, encode_with)
    assert encode(text).tolist() == tokenizer.hf.encode(text, add_special_tokens=False).ids


@cache
def made_bpe(n_merges: int, encode_with) -> tuple[Tokenizer, Callable[[str], Ids]]:
    config = TokenizerConfig(kind="bpe", vocab_size=257 + n_merges)
    tokenizer = train_tokenizer(config, [LEARNED_FROM, *map(chr, range(0x370, 0x400))])
    return tokenizer, encode_with(tokenizer)


@pytest.mark.parametrize(("kind", "lowercase"), VARIANTS)
@given(text=texts)
@settings(max_examples=100)
def test_a_text_cut_where_we_cut_gives_the_same_ids(kind: str, lowercase: bool, text: str) -> None:
    tokenizer = made(kind, lowercase)
    at = last_cut(text)
    assert [*tokenizer.encode(text[:at]), *tokenizer.encode(text[at:])] == tokenizer.encode(text).tolist()


@pytest.mark.parametrize(("kind", "lowercase"), VARIANTS)
@given(documents=st.lists(texts, max_size=5))
@settings(max_examples=100)
def test_documents_encode_as_each_alone(kind: str, lowercase: bool, documents: list[str]) -> None:
    tokenizer = made(kind, lowercase)
    expected: list[int] = []
    for text in documents:
        expected += tokenizer.hf.encode(text).ids
        if not (kind == "word" and text.endswith("\n")):
            expected.append(0)
    assert tokenizer.encode_documents((text, True) for text in documents).tolist() == expected


@given(words=st.lists(st.text(odd, min_size=1, max_size=5)))
def test_words_come_back_from_the_word_tokenizer(words: list[str]) -> None:
    clean = [word for word in split_words(" ".join(words)) if word not in ("<eos>", "<unk>")]
    tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [" ".join(clean)])
    assert tokenizer.decode(tokenizer.encode(" ".join(clean))) == " ".join(clean)


@given(text=texts, size=st.integers(1, 9))
def test_pieces_and_units_leave_nothing_out(text: str, size: int) -> None:
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    assert "".join(piece.text for piece in cut_file(blocks)) == text
    assert "".join(split_units(text)) == text


@given(text=st.text(st.sampled_from("ab \t\n\r\x0b\x0c"), max_size=30))
def test_words_are_counted_as_they_are_split(text: str) -> None:
    assert count_words(text.encode()) == len(text.split())
