"""The parser: what it reads and refuses, and how its trees are scored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_parsing import LINES, TREES, random_model, random_parser, tokenizers

from regard.data.pairs import Pairs
from regard.data.rows import Rows
from regard.data.tree_lines import TreeLimits, linearise
from regard.data.tree_pairs import FORMS
from regard.decode.config import BeamConfig
from regard.decode.lines import LinesDone
from regard.decode.parse import Parser
from regard.errors import RegardError
from regard.score.bracket_f1 import BracketScore, bracket_f1
from regard.tasks.parsing import ParseScore, score_parses
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

RNN: dict[str, Any] = {"encoder": "gru", "decoder": "gru", "attention": "dot"}


def test_a_tree_has_the_words_as_they_were_given_and_the_model_reads_brackets_as_treebanks_spell_them() -> None:
    parser = random_parser("tag", **RNN)
    given, spelled = parser.all(["the  dog ( barks )", "the dog -LRB- barks -RRB-"])
    assert given.tree is not None
    assert spelled.tree is not None
    assert given.tree.words == ("the", "dog", "(", "barks", ")")
    assert given.tree.tags == spelled.tree.tags
    assert given.log_prob == pytest.approx(spelled.log_prob)
    assert given.log_prob < 0


def test_without_the_constraint_what_a_random_model_writes_is_no_tree() -> None:
    sentences = ["the dog barks .", "he saw dogs"]
    free, held = (random_parser("slot", is_constrained=is_held, **RNN).all(sentences) for is_held in (False, True))
    assert [parse.tree for parse in free] == [None, None]
    assert all(freely.log_prob > parse.log_prob for freely, parse in zip(free, held, strict=True))


def test_the_room_of_a_transformer_bounds_brackets_and_words() -> None:
    limits = TreeLimits(max_tokens=20)
    assert (limits.max_words, limits.max_brackets(5), limits.max_brackets(17)) == (17, 7, 1)
    assert TreeLimits(max_tokens=100).max_brackets(5) == TreeLimits().max_brackets(5) == 11
    parser = random_parser("slot", encoder="gru", max_context=20)
    assert parser.limits == limits
    longest, longer = " ".join(["a"] * 17), " ".join(["b"] * 18)
    (parse,) = parser.all([longest])
    assert parse.tree is not None
    assert parse.tree.depth == 2  # one bracket, and the slots
    with pytest.raises(RegardError, match=r"begins 'b b b b b' has 18 words, and the model writes trees of at most 17"):
        parser.all([longer])
    with pytest.raises(RegardError, match="18 words"):
        list(parser.lines([longest, longer]))
    told: list[LinesDone] = []
    trees = [parse.tree for parse in parser.lines([longer, "", longest], skips_long=True, progress=told.append)]
    assert trees == [None, None, parse.tree]
    assert told[-1] == LinesDone(n_lines=3, n_empty=1, n_skipped=1)


def test_a_source_that_is_too_long_is_refused_by_its_line() -> None:
    parser = random_parser("slot", max_context=20)
    with pytest.raises(RegardError, match="Line 2 has 24 tokens; at most 20 can be read"):
        list(parser.lines(["a dog", "a dog that barks in town"]))


def test_a_vocabulary_that_was_not_learned_on_trees_is_refused() -> None:
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the dog barks"])
    parser = Parser([random_model(words, words, 0, **RNN)], words, words, "slot")
    with pytest.raises(RegardError, match="The vocabulary has no opening bracket such as"):
        parser.all(["the dog"])


@pytest.mark.parametrize("tree_words", ["slot", "tag"])
def test_the_score_is_bracket_f1_of_the_parses_against_the_trees(tree_words: str) -> None:
    source, target = tokenizers(tree_words)
    texts = [(" ".join(tree.words), " ".join(linearise(tree, FORMS[tree_words]))) for tree in TREES]
    tags = Rows.of([np.frombuffer(" ".join(tree.tags).encode(), dtype=np.uint8) for tree in TREES], np.uint8)
    pairs = replace(Pairs.of(texts, source, target), word_tags=tags)
    held, free = (random_parser(tree_words, 3, is_constrained=is_held, **RNN) for is_held in (True, False))
    told: list[tuple[str, int, int | None]] = []
    found = score_parses(held, free, pairs, lambda *how_far: told.append(how_far))
    first, second, n = "parsing without the constraint", "parsing", len(TREES)
    assert told == [(first, 0, n), (first, n, n), (second, 0, n), (second, n, n)]
    trees = [parse.tree for parse in held.all([source for source, _ in texts])]
    assert found.brackets == bracket_f1([tree for tree in trees if tree is not None], TREES)
    assert found.brackets.n_gold == sum(
        line.count("(") - len(tree.words) for line, tree in zip(LINES, TREES, strict=True)
    )
    assert found.n_ill_formed == len(TREES)


def test_a_score_is_told_in_shares() -> None:
    brackets = BracketScore(n_matched=8, n_gold=8, n_predicted=10, n_exact=1, n_sentences=3)
    told = ParseScore(brackets=brackets, n_ill_formed=2).to_dict()
    assert (told["precision"], told["recall"], told["n_ill_formed"]) == (0.8, 1.0, 2)
    assert told["f1"] == pytest.approx(16 / 18)


def test_several_models_parse_together() -> None:
    source, target = tokenizers("tag")
    models = [random_model(source, target, seed, **RNN) for seed in (0, 1)]
    parser = Parser(models, source, target, "tag", BeamConfig(beam=2))
    (parse,) = parser.all(["the dog barks ."])
    assert parse.tree is not None
    assert parse.tree.words == ("the", "dog", "barks", ".")
    with torch.no_grad():
        models[1].embedding.zero_()
    assert parser.all(["the dog barks ."])[0].log_prob != parse.log_prob
