"""Files of trees as pairs: every form, every fault with its file and line, and what a run makes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from treebank import read_trees

from regard.config import RunConfig
from regard.data.pair_batches import PairBatches
from regard.data.pair_source import PairReader, resolve_pairs
from regard.data.pairs import Pairs
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import prepare_pairs
from regard.data.tree_pairs import rebuild_tree
from regard.data.trees import parse_trees
from regard.errors import RegardError
from regard.score.bracket_f1 import bracket_f1
from regard.tasks.table import build_config
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.training.teaching_config import TeachingConfig

WANTED = """
( (S
    (NP-SBJ-1 (DT The) (NN dog) )
    (VP (VBD wanted)
      (S (NP-SBJ (-NONE- *-1) ) (VP (TO to) (VP (VB bark) ))))
    (. .) ))
( (NP (NNS Dogs) ) )
"""
WORDS = ["The dog wanted to bark .", "Dogs"]
SLOTS = ["(S (NP XX XX )NP (VP XX (S (VP XX (VP XX )VP )VP )S )VP XX )S", "(NP XX )NP"]
TAGS = ["(S (NP DT NN )NP (VP VBD (S (VP TO (VP VB )VP )VP )S )VP . )S", "(NP NNS )NP"]


def written(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / name)


def read(tmp_path: Path, **settings: Any) -> tuple[list[tuple[str, str]], dict[str, int]]:
    data = PairsConfig(**settings)
    spool = tmp_path / "spool"
    spool.mkdir()
    reader = PairReader(data)
    parts = resolve_pairs(data, "train", spool, tmp_path / "cache")
    return [(pair.source, pair.target) for part in parts for pair in reader.pairs(part)], dict(reader.skipped)


@pytest.mark.parametrize(("tree_words", "targets"), [("slot", SLOTS), ("tag", TAGS)])
@pytest.mark.parametrize("skips_bad", [False, True])
def test_a_treebanks_file_gives_words_and_brackets_without_traces_and_functions(
    tmp_path: Path, tree_words: str, targets: list[str], skips_bad: bool
) -> None:
    path = written(tmp_path, "wsj.mrg", WANTED)
    found = read(tmp_path, train=path, tree_words=tree_words, skips_bad=skips_bad)
    assert found == (list(zip(WORDS, targets, strict=True)), {})


def test_one_tree_a_line_is_read_from_a_file_of_any_name(tmp_path: Path) -> None:
    path = written(tmp_path, "trees.txt", "(S (NP (NN a)) (VP (VB b)))\n\n(NP (NN c)) (NP (NN d))\n")
    expected = [("a b", "(S (NP XX )NP (VP XX )VP )S"), ("c", "(NP XX )NP"), ("d", "(NP XX )NP")]
    assert read(tmp_path, train=path, format="trees")[0] == expected


def test_trees_without_parts_of_speech_are_read_bare(tmp_path: Path) -> None:
    path = written(tmp_path, "bare.mrg", "(S (NP the dog) (VP barks))\n")
    assert read(tmp_path, train=path, tree_words="bare")[0] == [("the dog barks", "(S (NP XX XX )NP (VP XX )VP )S")]


def test_a_bracket_on_a_line_of_its_own_begins_no_tree_inside_another(tmp_path: Path) -> None:
    path = written(tmp_path, "a.mrg", "(S\n(NP (NN a))\n(VP (VB b)))\n")
    assert read(tmp_path, train=path)[0] == [("a b", "(S (NP XX )NP (VP XX )VP )S")]


def test_a_folder_stands_for_its_mrg_files_and_globs_split_a_treebank(tmp_path: Path) -> None:
    for number in (1, 99, 100, 159, 160, 179, 180, 199):
        written(tmp_path, f"bank/wsj_{number:04}.mrg", f"(NP (CD {number}))\n")
    written(tmp_path, "bank/README", "Nothing to parse.\n")
    bank = tmp_path / "bank"
    assert [source for source, _ in read(tmp_path, train=str(bank), format="trees")[0]] == [
        "1", "99", "100", "159", "160", "179", "180", "199"
    ]  # fmt: skip
    data = PairsConfig(
        train=(f"{bank}/wsj_00*.mrg", f"{bank}/wsj_01[0-5]*.mrg"),
        valid=f"{bank}/wsj_01[67]*.mrg",
        test=f"{bank}/wsj_01[89]*.mrg",
    )
    words = TokenizerConfig(kind="word", vocab_size=None)
    prepared = prepare_pairs(data, words, words, cache=tmp_path / "cache")
    split = [[pairs.source_text(i) for i in range(len(pairs))] for pairs in (prepared.train, prepared.valid)]
    assert split == [["1", "99", "100", "159"], ["160", "179"]]


FAULTS = {
    "never closed": ("(S (NP (NN b))\n", 2, "this tree is never closed: 1 closing bracket", "broken tree"),
    "closed twice": ("(S (NP (NN b))))\n", 2, "')' closes a bracket that was never opened", "broken tree"),
    "only traces": ("(S (-NONE- *))\n", 2, "this tree has no words, only traces", "broken tree"),
    "a word beside others": ("(S (NP b c))\n", 2, "The word 'b' stands beside others", "no parts of speech"),
    "a word alone": ("(NN b)\n", 2, "is a part of speech alone", "no parts of speech"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_tree_is_an_error_with_its_file_and_line_or_is_left_out_and_counted(tmp_path: Path, name: str) -> None:
    bad, line, why, kind = FAULTS[name]
    path = written(tmp_path, "my.mrg", f"(NP (NN a))\n{bad}(NP (NN c))\n")
    with pytest.raises(RegardError) as error:
        read(tmp_path, train=path)
    assert str(error.value).startswith(f"{path}, line {line}: ")
    assert why in str(error.value)
    assert str(error.value).endswith("To leave out such lines and count them: --skip-bad (data.skips_bad).")
    (tmp_path / "spool").rename(tmp_path / "old")
    found, skipped = read(tmp_path, train=path, skips_bad=True)
    assert [source for source, _ in found] == ["a", "c"]
    assert skipped == {kind: 1}


def test_broken_utf8_takes_its_tree_along(tmp_path: Path) -> None:
    path = tmp_path / "my.mrg"
    path.write_bytes(b"(NP (NN a))\n(NP\n  (NN \xff))\n(NP (NN c))\n")
    with pytest.raises(RegardError, match=r"my\.mrg, line 3 is not UTF-8 text: byte 0xff at its byte 7"):
        read(tmp_path, train=str(path))
    (tmp_path / "spool").rename(tmp_path / "old")
    found, skipped = read(tmp_path, train=str(path), skips_bad=True)
    assert [source for source, _ in found] == ["a", "c"]
    assert skipped == {"broken UTF-8": 1}


def test_what_is_written_for_a_word_is_part_of_what_the_data_are(tmp_path: Path) -> None:
    path, words = (
        written(tmp_path, "my.mrg", "(NP (NN a))\n(NP (NN b))\n"),
        TokenizerConfig(kind="word", vocab_size=None),
    )
    targets = {}
    for tree_words in ("slot", "tag"):
        data = PairsConfig(train=path, tree_words=tree_words, p_valid=0.0, p_test=0.0)
        targets[tree_words] = prepare_pairs(data, words, words, cache=tmp_path / "cache").train.target_text(0)
    assert targets == {"slot": "(NP XX )NP", "tag": "(NP NN )NP"}


def test_trees_are_known_by_name_or_format_and_mix_with_nothing_else() -> None:
    assert PairsConfig(train=("a.mrg", "b.mrg.gz")).has_trees
    assert PairsConfig(train="trees.txt", format="trees").has_trees
    assert not PairsConfig(train="a.tsv").has_trees
    with pytest.raises(RegardError, match=r"Some of these files hold trees and some do not \(tsv\).*format to trees"):
        PairsConfig(train="a.mrg", valid="b.txt")
    with pytest.raises(RegardError, match="is_reversed is true, but the words of a tree cannot be the target"):
        PairsConfig(train="a.mrg", is_reversed=True)


def config(**sections: Any) -> RunConfig:
    return build_config({"data": {"train": "a.mrg"}, "model": {"name": "seq2seq"}} | sections)


def test_brackets_have_a_vocabulary_of_whole_words_of_their_own() -> None:
    whole = TokenizerConfig(kind="word", vocab_size=None)
    assert config().sections["target_tokenizer"] == whole
    assert config(target_tokenizer={"kind": "word", "vocab_size": None}).sections["target_tokenizer"] == whole
    assert build_config(config().to_dict()) == config()
    for wrong in (
        {"kind": "bpe"},
        {"kind": "word", "vocab_size": 50},
        {"kind": "word", "vocab_size": None, "min_count": 2},
    ):
        with pytest.raises(RegardError, match=r"target_tokenizer must be \{kind: word, vocab_size: null\}"):
            config(target_tokenizer=wrong)


def test_f1_judges_trees_and_nothing_else() -> None:
    assert config(teaching={"select_by": "f1"}).section("teaching", TeachingConfig).select_by == "f1"
    with pytest.raises(RegardError, match=r"select_by is f1, which is not for translation. Take loss or bleu"):
        config(data={"train": "a.tsv"}, teaching={"select_by": "f1"})


def test_bpe_dropout_cuts_words_and_leaves_brackets() -> None:
    source = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=270), ["barking dogs bark"] * 9)
    target = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["(S XX XX XX )S"])
    pairs = Pairs.of([("barking dogs bark", "(S XX XX XX )S")], source, target)
    batches = PairBatches(pairs, max_tokens=100, p_bpe_dropout=0.5)
    batch = [batches.at(i) for i in range(8)]
    assert len({b.source.tobytes() for b in batch}) > 1
    assert all(np.array_equal(b.targets, [[*target.encode("(S XX XX XX )S"), 0]]) for b in batch)


QUOTED = [
    "(S (PRN (`` «)) (NP (NNS Hunde)) (VP (VBP bellen) (PRN (: …))) ('' »))",
    "(S (NP (`` „) (NN Rex) ('' “)) (VP (VBZ bellt)) (. .))",
]


def prepared(tmp_path: Path, path: str, tree_words: str) -> Pairs:
    words = TokenizerConfig(kind="word", vocab_size=None)
    data = PairsConfig(train=path, format="trees", tree_words=tree_words, p_valid=0.0, p_test=0.0)
    return prepare_pairs(data, words, words, cache=tmp_path / "cache").train


@pytest.mark.parametrize("tree_words", ["slot", "tag"])
def test_gold_trees_keep_their_tags_and_so_tell_what_is_punctuation(tmp_path: Path, tree_words: str) -> None:
    """Without punctuation, and PRN that holds nothing else, both trees have S, NP and VP."""
    path, trees = written(tmp_path, "my.mrg", "\n".join(QUOTED)), list(parse_trees(QUOTED))
    pairs = prepared(tmp_path, path, tree_words)
    gold = [rebuild_tree(pairs, i, tree_words) for i in range(2)]
    assert gold == trees
    assert bracket_f1(trees, gold).n_gold == 6
    assert [rebuild_tree(some, 0, tree_words) for some in (pairs.select(np.array([1])), pairs.take_evenly(1))] == [
        trees[1],
        trees[0],
    ]


def test_bare_trees_have_no_punctuation(tmp_path: Path) -> None:
    pairs = prepared(tmp_path, written(tmp_path, "my.mrg", "(S (NP dogs) (VP bark) (PRN !))\n"), "bare")
    gold = rebuild_tree(pairs, 0, "bare")
    assert pairs.tags_of_words(0) is None
    assert bracket_f1([gold], [gold], has_tags=False).n_gold == 4


def test_tags_that_a_cache_does_not_have_are_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, "my.mrg", "\n".join(QUOTED))
    first = prepared(tmp_path, path, "slot").tags_of_words(1)
    for file in (tmp_path / "cache").glob("pair-texts/*/word_tags.*"):
        file.unlink()
    assert prepared(tmp_path, path, "slot").tags_of_words(1) == first == ["``", "NN", "''", "VBZ", "."]


@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="REGARD_DATA names the folder with treebank/")
@pytest.mark.parametrize("tree_words", ["slot", "tag"])
def test_every_tree_of_the_treebanks_sample_comes_back(tmp_path: Path, tree_words: str) -> None:
    bank = Path(os.environ["REGARD_DATA"]) / "treebank"
    pairs = prepared(tmp_path, str(bank), tree_words)
    assert [rebuild_tree(pairs, i, tree_words) for i in range(len(pairs))] == list(read_trees(bank))
