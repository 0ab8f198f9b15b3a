"""Pairs that the built-in grammar writes, by name."""

from pathlib import Path

import pytest

from regard.data.pair_grammar import of_split, write_pairs
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import encode_pairs_with, prepare_pairs
from regard.errors import RegardError
from regard.text.config import TokenizerConfig

WORDS = TokenizerConfig(kind="word", vocab_size=None)


def test_what_is_held_out_is_the_grammars_own_affair(tmp_path: Path) -> None:
    data = PairsConfig(train="grammar:en-de:60")
    assert [part.names for part in data.parts("test")] == [("grammar:en-de:1000@test",)]
    assert data.part_valid == data.part_test == 0.0
    named = data.replace(valid="grammar:en-de:7", test="grammar:en-de:5")
    prepared = prepare_pairs(named, WORDS, WORDS, cache=tmp_path)
    assert [len(prepared.train), len(prepared.valid), len(prepared.test)] == [60, 7, 5]
    (tmp_path / "again").mkdir()
    write_pairs("grammar:en-de:5@test", tmp_path / "again" / "five.tsv")
    lines = (tmp_path / "again" / "five.tsv").read_text(encoding="utf-8").splitlines()
    assert lines == [f"{prepared.test.source_text(i)}\t{prepared.test.target_text(i)}" for i in range(5)]


def test_a_run_is_scored_on_the_test_pairs_by_name(tmp_path: Path) -> None:
    """To whom scores other pairs they are all there is: they are not held against test pairs of their own."""
    learned = prepare_pairs(PairsConfig(train="grammar:en-de:60"), WORDS, WORDS, cache=tmp_path)
    tokenizers = learned.source_tokenizer, learned.target_tokenizer
    pairs = encode_pairs_with(*tokenizers, PairsConfig(train="grammar:en-de@test"), cache=tmp_path)
    assert len(pairs) == len(learned.test) == 1000
    assert pairs.source_text(0) == learned.test.source_text(0)


def test_parts_of_the_grammar_keep_their_tags() -> None:
    data = PairsConfig(train=(("grammar:en-de:10", "<2de>"), ("grammar:de-fr:10", "<2fr>")))
    assert [(part.names, part.tag) for part in data.parts("valid")] == [
        (("grammar:en-de:1000@valid",), "<2de>"),
        (("grammar:de-fr:1000@valid",), "<2fr>"),
    ]


def test_a_diagnostic_is_written_too(tmp_path: Path) -> None:
    write_pairs(of_split("grammar:reversal:20", "train"), tmp_path / "pairs.tsv")
    for line in (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")
        assert source.split()[::-1] == target.split()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("grammar:en-dee", r"'grammar:en-dee' names no pairs of the built-in grammar. Did you mean 'en-de'\?"),
        ("grammar:en-en", "There are en-de"),
        ("grammar:en-de:0", "names no pairs"),
        ("grammar:en-de:many", "names no pairs"),
    ],
)
def test_other_names_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(RegardError, match=sentence):
        PairsConfig(train=name)
