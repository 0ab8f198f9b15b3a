"""Tokenizers of published Marians, as tokenizer.json keeps them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_published import SOURCES, TARGETS, list_pieces, train_pieces

from regard.errors import RegardError
from regard.tasks.pairs import share_ids
from regard.text.config import TokenizerConfig
from regard.text.marian_tokenizer import read_sides
from regard.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose vocab.json lacks the piece ▁the of the source, and has all others."""
    folder = tmp_path_factory.mktemp("opus")
    pieces = set()
    for name, lines in (("source", SOURCES), ("target", TARGETS)):
        (folder / f"{name}.spm").write_bytes(model := train_pieces(lines))
        pieces |= set(list_pieces(model))
    names = ["</s>", "<unk>", *sorted(pieces - {"▁the"}), ">>de<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    return folder


@pytest.fixture(scope="module")
def sides(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    source, target = map(Tokenizer.from_json, read_sides(folder))
    return source, target


def test_what_is_saved_is_read_again(sides: tuple[Tokenizer, Tokenizer], tmp_path: Path) -> None:
    for side in sides:
        side.save(tmp_path / "tokenizer.json")
        again = Tokenizer.load(tmp_path)
        assert (again.hash, again.vocab_size, again.kind) == (side.hash, side.vocab_size, "unigram")
        assert again.encode("The dogs läuft zzz").tolist() == side.encode("The dogs läuft zzz").tolist()


def test_a_piece_without_a_number_is_unknown(sides: tuple[Tokenizer, Tokenizer]) -> None:
    source, _ = sides
    assert source.encode("the").tolist() == [source.unk]
    assert source.id_of("▁the") is None
    assert max(source.hf.get_vocab().values()) >= source.vocab_size


def test_both_sides_number_alike_and_cut_otherwise(sides: tuple[Tokenizer, Tokenizer], folder: Path) -> None:
    source, target = sides
    vocab = json.loads((folder / "vocab.json").read_text())
    assert share_ids(sides)
    for name, number in vocab.items():
        assert source.token_text(number) == target.token_text(number) == name
        assert source.id_of(name) == target.id_of(name) == number
    assert source.encode("Häuser").tolist() != target.encode("Häuser").tolist()
    assert (source.eos, source.unk, source.start) == (0, 1, len(vocab) - 1)
    assert source.encode(">>de<< dog").tolist()[0] == vocab[">>de<<"]


def test_marks_spelled_in_a_text_stay_text(sides: tuple[Tokenizer, Tokenizer]) -> None:
    for side in sides:
        assert not {side.eos, side.start} & set(side.encode("a </s> b <pad>").tolist())


def test_the_saved_tokenizer_cuts_plain_texts_alike_in_tokenizers(sides: tuple[Tokenizer, Tokenizer]) -> None:
    for side, lines in zip(sides, (SOURCES, TARGETS), strict=True):
        for line in lines:
            theirs = [i if i < side.vocab_size else side.unk for i in side.hf.encode(line).ids]
            assert side.encode(line).tolist() == theirs
    assert sides[1].hf.decode(sides[1].encode("Die Katze").tolist()) == "Die Katze"


def test_offsets_are_those_of_the_words(sides: tuple[Tokenizer, Tokenizer]) -> None:
    text = "  Is  the ﬁne house?"
    ids, spans = sides[0].encode_with_offsets(text)
    assert ids.tolist() == sides[0].encode(text).tolist()
    assert "".join(text[start:end] for start, end in spans).replace("ﬁﬁ", "ﬁ").replace(" ", "") == "Istheﬁnehouse?"


def test_it_is_read_and_not_learned() -> None:
    with pytest.raises(
        RegardError, match=r"kind is unigram, which Regard reads and does not learn. Set tokenizer\.path"
    ):
        TokenizerConfig(kind="unigram")


def _without(mark: str) -> Callable[[Any], None]:
    def change(parsed: Any) -> None:
        parsed["model"]["vocab"] = [entry for entry in parsed["model"]["vocab"] if entry[0] != mark]

    return change


def _set(**changes: Any) -> Callable[[Any], None]:
    return lambda parsed: parsed.update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without("<pad>"), "no tokenizer of Marian's.* it lacks <pad>"),
        (lambda parsed: parsed["model"]["vocab"].sort(key=lambda entry: entry[0] != " "), "it lacks </s>"),
        (
            lambda parsed: parsed["model"]["vocab"].extend([f"{i}".zfill(500), -1.0] for i in range(4500)),
            "at most 2,097,152 are read",
        ),
        (lambda parsed: parsed["model"]["vocab"].append(["x", 1e300]), "each once and with a finite number"),
        (lambda parsed: parsed["model"]["vocab"].append(["</s>", 0.0]), "each once and with a finite number"),
        (lambda parsed: parsed["model"].update(vocab={"a": 1}), "must list tokens"),
        (lambda parsed: parsed["model"].update(byte_fallback=True), "changes texts in another way"),
        (lambda parsed: parsed["model"].update(unk_id=0), "changes texts in another way"),
        (_set(normalizer={"type": "Lowercase"}), "has the normalizer 'Lowercase'"),
        (_set(normalizer={"type": "Precompiled", "precompiled_charsmap": "!"}), "that is not base64"),
        (_set(normalizer={"type": "Precompiled", "precompiled_charsmap": "////////"}), "a broken table of characters"),
        (_set(pre_tokenizer={"type": "Metaspace"}), "the model Unigram and the pre-tokenizer Metaspace"),
    ],
)  # fmt: skip
def test_a_tokenizer_of_another_kind_is_refused(
    change: Callable[[Any], None], words: str, sides: tuple[Tokenizer, Tokenizer]
) -> None:
    parsed = json.loads(sides[0].json)
    change(parsed)
    with pytest.raises(RegardError, match=words):
        Tokenizer.from_json(json.dumps(parsed))


def test_a_published_folder_is_no_tokenizer_for_both_sides(folder: Path) -> None:
    with pytest.raises(RegardError, match=r"is a published Marian, with a tokenizer for each side\. Make it a run"):
        Tokenizer.load(folder)
