"""Pairs that the built-in grammar writes, by name."""

from pathlib import Path

import pytest

from regard.data.builtin.grammar import Grammar
from regard.data.cache_limit import remove_all
from regard.data.pair_grammar import complete_name, find_links, grammar_file, preview_grammar
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import encode_pairs, prepare_pairs
from regard.data.tree_lines import TreeLimits, linearise
from regard.data.trees import Tree, parse_trees
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
    lines = grammar_file("grammar:en-de:5@test", tmp_path).read_text(encoding="utf-8").splitlines()
    assert lines == [f"{prepared.test.source_text(i)}\t{prepared.test.target_text(i)}" for i in range(5)]


def test_a_run_is_scored_on_the_test_pairs_by_name(tmp_path: Path) -> None:
    """To whom scores other pairs they are all there is: they are not held against test pairs of their own."""
    few = PairsConfig(train="grammar:en-de:60", valid="grammar:en-de:5@valid", test="grammar:en-de:5@test")
    learned = prepare_pairs(few, WORDS, WORDS, cache=tmp_path)
    tokenizers = learned.source_tokenizer, learned.target_tokenizer
    pairs = encode_pairs(*tokenizers, PairsConfig(train="grammar:en-de:5@test"), cache=tmp_path).train
    assert len(pairs) == len(learned.test) == 5
    assert pairs.source_text(0) == learned.test.source_text(0)


def test_what_a_name_stands_for_is_seen_without_writing_all_of_it(tmp_path: Path) -> None:
    train, valid, test = preview_grammar("grammar:en-de", 2)
    assert [(found.split, found.n_pairs) for found in (train, valid, test)] == [
        ("train", 20_000), ("valid", 1_000), ("test", 1_000)
    ]  # fmt: skip
    lines = grammar_file("grammar:en-de:2@valid", tmp_path).read_text(encoding="utf-8").splitlines()
    assert [f"{source}\t{target}" for source, target in valid.first] == lines
    (only,) = preview_grammar("grammar:en-trees:7@test", 1)
    assert (only.split, only.n_pairs) == ("test", 7)
    ((words, tree),) = only.first
    assert [found.words for found in parse_trees([tree])] == [tuple(words.split())]


def test_parts_of_the_grammar_keep_their_tags() -> None:
    data = PairsConfig(train=(("grammar:en-de:10", "<2de>"), ("grammar:de-fr:10", "<2fr>")))
    assert [(part.names, part.tag) for part in data.parts("valid")] == [
        (("grammar:en-de:1000@valid",), "<2de>"),
        (("grammar:de-fr:1000@valid",), "<2fr>"),
    ]


def test_pairs_are_drawn_once_and_then_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = grammar_file("grammar:en-de:5@test", tmp_path)
    monkeypatch.setattr("regard.data.pair_grammar._draw_pairs", None)
    assert grammar_file("grammar:en-de:5@test", tmp_path) == first
    with pytest.raises(TypeError):
        grammar_file("grammar:en-de:6@test", tmp_path)


def test_pairs_that_were_damaged_in_the_cache_are_drawn_again(tmp_path: Path) -> None:
    path = grammar_file("grammar:en-de:5@test", tmp_path)
    whole = path.read_bytes()
    for damaged in (b"a" + whole[1:], whole[:-9]):
        path.write_bytes(damaged)
        assert grammar_file("grammar:en-de:5@test", tmp_path).read_bytes() == whole
    path.with_suffix(".sha256").write_bytes(b"0" * 64)
    assert grammar_file("grammar:en-de:5@test", tmp_path).read_bytes() == whole
    remove_all(tmp_path)
    assert not list(tmp_path.glob("*/*"))  # with the checksum beside it


def test_a_diagnostic_is_written_too(tmp_path: Path) -> None:
    path = grammar_file(complete_name("grammar:reversal:20", "train"), tmp_path)
    for line in path.read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")
        assert source.split()[::-1] == target.split()


@pytest.mark.parametrize(("language", "roots"), [("en", {"(S", "(SQ"}), ("de", {"(S"}), ("fr", {"(SENT"})])
def test_trees_are_sentences_and_their_brackets(language: str, roots: set[str], tmp_path: Path) -> None:
    data = PairsConfig(train=f"grammar:{language}-trees:40", valid=f"grammar:{language}-trees:7")
    assert data.has_trees
    assert [part.names for part in data.parts("test")] == [(f"grammar:{language}-trees:1000@test",)]
    prepared = prepare_pairs(data.replace(test=f"grammar:{language}-trees:5"), WORDS, WORDS, cache=tmp_path)
    assert [len(prepared.train), len(prepared.valid), len(prepared.test)] == [40, 7, 5]
    for index, sentence in enumerate(Grammar().sentences("valid", 7)):
        assert prepared.valid.source_text(index) == " ".join(sentence.words(language))
        tokens = prepared.valid.target_text(index).split()
        assert tokens[0] in roots
        assert tokens.count("XX") == len(sentence.words(language))
        (tree,) = parse_trees([sentence.trees[language]])
        assert tokens == linearise(tree)


def test_every_tree_is_within_what_a_parser_may_write() -> None:
    """Else the constraint would forbid the right answer."""
    limits = TreeLimits()
    for sentence in Grammar().sentences("valid", 200):
        for text in sentence.trees.values():
            (tree,) = parse_trees([text])
            phrases = [found for found, _, _ in tree.brackets() if not found.is_tag]
            assert len(phrases) <= limits.max_brackets(len(tree.words))
            assert max(map(unary_chain, phrases)) <= limits.max_chain


def unary_chain(tree: Tree) -> int:
    only = tree.children[0]
    return 1 + unary_chain(only) if len(tree.children) == 1 and isinstance(only, Tree) and not only.is_tag else 1


def test_trees_and_translations_are_not_taken_for_one_another() -> None:
    with pytest.raises(RegardError, match=r"format is trees, and grammar:en-de names no trees\. Leave format out"):
        PairsConfig(train="grammar:en-de", format="trees")
    with pytest.raises(RegardError, match=r"format is tsv, and grammar:en-trees names trees\. Leave format out"):
        PairsConfig(train="grammar:en-trees", format="tsv")
    with pytest.raises(RegardError, match="Some of these files hold trees and some do not"):
        PairsConfig(train=("grammar:en-trees", "grammar:en-de"))
    assert PairsConfig(train="grammar:en-trees", format="trees").has_trees


def test_the_grammar_may_stand_beside_a_file_of_ones_own() -> None:
    parts = PairsConfig(train=("grammar:en-de", "my.tsv")).parts("train")
    assert [part.names for part in parts] == [("grammar:en-de:20000@train",), ("my.tsv",)]
    with pytest.raises(RegardError, match="train names 2 files of lines: grammar:en-de, my"):
        PairsConfig(train=("grammar:en-de", "my.en"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("grammar:trees", r"names no pairs of the built-in grammar. Did you mean '..-trees'\?"),
        ("grammar:en-dee", r"'grammar:en-dee' names no pairs of the built-in grammar. Did you mean 'en-de'\?"),
        ("grammar:en-en", "There are en-de"),
        ("grammar:en-de:0", "names no pairs"),
        ("grammar:en-de:many", "names no pairs"),
    ],
)
def test_other_names_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(RegardError, match=sentence):
        PairsConfig(train=name)


@pytest.mark.parametrize("name", ["grammar:en-de", "grammar:en-de/event:50", "grammar:en-de/long"])
def test_links_are_known_of_sentences_of_one_kind_too(name: str) -> None:
    source, target = (side.split() for side in preview_grammar(name, 1)[-1].first[0])
    links = find_links(name, source, target)
    assert links is not None
    assert {j for _, j in links} <= set(range(len(target)))
    assert find_links(name, source, target[:-1]) is None


def test_no_links_are_known_of_trees_of_one_kind() -> None:
    assert find_links("grammar:en-trees/long", ["The"], ["(S"]) is None
