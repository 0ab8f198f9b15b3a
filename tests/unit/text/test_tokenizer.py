"""Tokenizers: vocabularies worked by hand, what is saved, what Hugging Face makes of it."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from regard.errors import RegardError
from regard.text.config import KINDS, TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

TEXT = "The cat sat on the mat.\nThe dog's bone lay on the mat, too!\nNaïve café — 12 cats; 345 dogs. ΣΑΣ\n" * 4
HARD = (
    "I'll  they'VE \n\n\t x1²³ ½a\u0301 \x1c\x85\xa0\u3000日本語 😀👩‍👧"
    " <eos> <unk> --\r\n   end ΣΑΣ \x0b\u200b\ufeff\x00  "
)


def made(kind: str, **settings: object) -> Tokenizer:
    sizes = {"bpe": 300, "wordpiece": 120}
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=sizes.get(kind), **settings), [TEXT])


VARIANTS = [(kind, False) for kind in KINDS] + [("word", True), ("wordpiece", True)]


@pytest.mark.parametrize(("kind", "lowercase"), VARIANTS)
@pytest.mark.parametrize("text", [TEXT, HARD, "", " ", "\n\n", "a", HARD * 40])
def test_huggingface_gives_the_same_ids_from_the_saved_file(
    kind: str, lowercase: bool, text: str, tmp_path: Path
) -> None:
    ours = made(kind, lowercase=lowercase)
    ours.save(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    expected = theirs.encode(text).ids
    assert ours.encode(text).tolist() == expected
    assert ours.encode_with_offsets(text)[0].tolist() == expected


@pytest.mark.parametrize(("kind", "lowercase"), VARIANTS)
def test_a_saved_tokenizer_comes_back_the_same(kind: str, lowercase: bool, tmp_path: Path) -> None:
    ours = made(kind, lowercase=lowercase)
    ours.save(tmp_path / "mine.json")
    back = Tokenizer.load(tmp_path / "mine.json")
    assert (back.kind, back.hash, back.vocab_size, back.unk) == (kind, ours.hash, ours.vocab_size, ours.unk)
    assert back.encode(HARD).tolist() == ours.encode(HARD).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_learning_twice_gives_the_same_tokenizer(kind: str) -> None:
    assert made(kind).hash == made(kind).hash


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
def test_lossless_kinds_give_any_text_back(kind: str) -> None:
    ours = made(kind)
    assert ours.is_lossless
    assert ours.decode(ours.encode(HARD)) == HARD


@pytest.mark.parametrize("kind", KINDS)
def test_eos_has_id_zero_and_lies_outside_ordinary_text(kind: str) -> None:
    ours = made(kind)
    assert (ours.id_of("<eos>"), ours.eos) == (0, 0)
    if kind != "word":
        assert 0 not in ours.encode("the <eos> mat")


def test_words_are_ranked_by_frequency_then_alphabet() -> None:
    ours = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["d b a c b\n", "c <unk>"])
    assert [ours.token_text(i) for i in range(ours.vocab_size)] == ["<eos>", "<unk>", "b", "c", "a", "d"]
    assert ours.encode("a <unk>\nz\n").tolist() == [4, 1, 0, 1, 0]
    assert ours.decode([4, 1, 0, 2, 0]) == "a <unk>\nb\n"


def test_min_count_and_vocab_size_drop_rare_words() -> None:
    rare = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None, min_count=2), ["b a c b c"])
    capped = train_tokenizer(TokenizerConfig(kind="word", vocab_size=4), ["b a c b c"])
    assert rare.encode("a b c").tolist() == capped.encode("a b c").tolist() == [1, 2, 3]


def test_characters_follow_the_bytes_and_unknown_ones_become_bytes() -> None:
    ours = train_tokenizer(TokenizerConfig(kind="char"), ["aab"])
    assert ours.vocab_size == 1 + 256 + 2
    assert ours.encode("abé").tolist() == [257, 258, 0xC3 + 1, 0xA9 + 1]
    assert ours.token_text(0xC3 + 1) == "\\xc3"


def test_a_byte_is_its_value_plus_one() -> None:
    assert made("byte").encode("aé").tolist() == [0x61 + 1, 0xC3 + 1, 0xA9 + 1]


def test_bpe_merges_the_most_frequent_pair_first() -> None:
    ours = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=258), ["abab abab cd"])
    assert ours.token_text(257) == "ab"
    assert [ours.token_text(i) for i in ours.encode("abcab")] == ["ab", "c", "ab"]


def test_wordpiece_marks_what_continues_a_word() -> None:
    ours = made("wordpiece")
    pieces = [ours.id_of("##s"), ours.id_of("cat")]
    assert None not in pieces
    assert ours.decode(ours.encode("the cats, too!")) == "the cats, too!"


@pytest.mark.parametrize("kind", ["byte", "char", "bpe", "wordpiece"])
def test_decode_agrees_with_huggingface(kind: str) -> None:
    ours = made(kind)
    ids = ours.encode(TEXT).tolist()
    assert ours.decode(ids) == ours.hf.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_point_at_the_characters_of_each_token(kind: str) -> None:
    text = "The cat\nsat é."
    ours = made(kind)
    ids, spans = ours.encode_with_offsets(text)
    assert len(ids) == len(spans)
    for token, (begin, end) in zip(ids, spans, strict=True):
        if "\\x" not in (shown := ours.token_text(int(token))) and token not in (ours.eos, ours.unk):
            assert shown.removeprefix("##").removeprefix("\n") == text[begin:end].removeprefix("\n")


def test_streaming_gives_only_whole_characters() -> None:
    ours = made("byte")
    decoder = ours.stream_decoder()
    assert [decoder.push(int(i)) for i in ours.encode("aé😀")] == ["a", "", "é", "", "", "", "😀"]
    assert decoder.flush() == ""
    decoder.push(0xC3 + 1)
    assert decoder.flush() == "\ufffd"


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_after_a_prompt_continues_it(kind: str) -> None:
    ours = made(kind)
    ids = ours.encode("The cat sat on\nthe mat.")
    for cut in range(len(ids) + 1):
        decoder = ours.stream_decoder(after=ids[:cut])
        rest = "".join(decoder.push(int(i)) for i in ids[cut:]) + decoder.flush()
        assert ours.decode(ids).endswith(rest)
        assert ours.is_lossless is False or len(ours.decode(ids[:cut])) + len(rest) >= len(ours.decode(ids))


def test_documents_end_with_eos_once() -> None:
    pieces = [("the cat", False), ("\nsat\n", True), ("the", True)]
    words, bpe = made("word"), made("bpe")
    assert words.decode(words.encode_documents(pieces)) == "the cat\nsat\nthe\n"
    expected = [*bpe.encode("the cat\nsat\n"), 0, *bpe.encode("the"), 0]
    assert bpe.encode_documents(pieces).tolist() == expected


def test_special_tokens_are_not_searched_for_in_text() -> None:
    for kind in ("bpe", "wordpiece"):
        assert json.loads(made(kind).json)["added_tokens"] == []


def test_remembered_units_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.text.encoding.MAX_UNITS", 5)
    monkeypatch.setattr("regard.text.encoding.gigatoken_encode", lambda hf: None)
    ours = made("bpe")
    for _ in range(3):
        assert ours.encode(TEXT).tolist() == ours.hf.encode(TEXT).ids
        assert ours.encode(HARD).tolist() == ours.hf.encode(HARD).ids


@pytest.mark.parametrize("text", [TEXT * 20, HARD * 20, "  ".join(HARD), "\n".join(reversed(HARD))])
def test_gigatoken_equals_the_library(text: str) -> None:
    pytest.importorskip("gigatoken")
    from regard.text.encoding import gigatoken_encode

    ours = made("bpe")
    fast = gigatoken_encode(ours.hf)
    assert fast is not None
    assert fast(text).tolist() == ours.hf.encode(text).ids


def test_a_gigatoken_that_disagrees_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    class Wrong:
        @staticmethod
        def from_json(_: str) -> Wrong:
            return Wrong()

        def encode(self, _: str) -> np.ndarray:
            return np.zeros(3, dtype=np.uint32)

    module = types.ModuleType("gigatoken")
    module.Tokenizer = Wrong  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gigatoken", module)
    ours = made("bpe")
    assert ours.encode("the cat").tolist() == ours.hf.encode("the cat").ids
    assert not ours.is_quick


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "bpe", "vocab_size": 100}, "vocab_size must be at least 257 for bpe"),
        ({"kind": "bpe", "vocab_size": None}, "vocab_size must be a whole number for kind bpe, not null"),
        (
            {"kind": "bpee"},
            "kind must be one of char, byte, word, bpe, wordpiece, unigram, not 'bpee'. Did you mean 'bpe'",
        ),
        ({"kind": "char", "lowercase": True}, "lowercase works with word and wordpiece, not with char"),
        ({"min_count": 0}, "min_count must be at least 1, not 0"),
    ],
)
def test_impossible_configs_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        TokenizerConfig(**settings)


def test_a_wordpiece_vocabulary_smaller_than_the_alphabet_is_refused() -> None:
    text = " ".join(chr(0x4E00 + i) for i in range(200))
    with pytest.raises(RegardError, match="too many different characters for a wordpiece vocabulary of 50"):
        train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=50), [text])


def test_loading_what_is_no_tokenizer_says_so(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"There is no tokenizer at .*nowhere"):
        Tokenizer.load(tmp_path / "nowhere")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(RegardError, match=r"is no tokenizer.json that `tokenizers` can read"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe")
    with pytest.raises(RegardError, match=r"cannot be read as a tokenizer.json"):
        Tokenizer.load(tmp_path)
    foreign = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    foreign.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    (tmp_path / "tokenizer.json").write_text(foreign.to_str())
    with pytest.raises(
        RegardError,
        match=r"made neither by Regard nor for GPT-2, BERT or RoBERTa: its vocabulary must have <eos> as id 0",
    ):
        Tokenizer.load(tmp_path)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(RegardError, match=r"no valid Unicode: character 1 is the lone surrogate '\\ud800'"):
        made("byte").encode("a\ud800")


def test_an_id_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(RegardError, match="Token id 257 is not in the vocabulary; ids go from 0 to 256"):
        made("byte").token_text(257)


@pytest.mark.data
def test_ptb_gives_its_ten_thousand_words() -> None:
    if "REGARD_DATA" not in os.environ:
        pytest.skip("REGARD_DATA is not set")
    folder = Path(os.environ["REGARD_DATA"]) / "ptb"
    ours = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [(folder / "ptb.train.txt").read_text()])
    assert ours.vocab_size == 10_000
    counts = [len(ours.encode((folder / f"ptb.{name}.txt").read_text())) for name in ("train", "valid", "test")]
    assert counts == [929_589, 73_760, 82_430]


def test_a_tokenizer_of_another_kind_is_told_which_are_read(tmp_path: Path) -> None:
    unigram = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("a", -1.0)], 0, False))
    unigram.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    unigram.add_special_tokens(["</s>"])
    unigram.save(str(tmp_path / "tokenizer.json"))
    sentence = (
        r"tokenizer\.json has the model Unigram and the pre-tokenizer Metaspace, which Regard does not read\. It reads "
        r"its own \(char, byte, word, bpe, wordpiece\) and GPT-2's, a byte-level BPE\. Leave out tokenizer\.path"
    )
    with pytest.raises(RegardError, match=sentence):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_a_tokenizer(kind: str) -> None:
    """The first calls fill what it remembers, so they are the ones that could disturb each other."""
    texts = [f"{n} cats and {n * n} dogs sat on mat {n % 7}.\n" * (1 + n % 3) for n in range(60)]
    expected = [made(kind).encode(text).tolist() for text in texts]
    shared, before = made(kind), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = [ids.tolist() for ids in threads.map(shared.encode, texts)]
    finally:
        sys.setswitchinterval(before)
    assert found == expected
