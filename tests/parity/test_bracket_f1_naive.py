"""A second scorer on another principle: it prunes the trees, and pairs brackets by the words they hold, one by one."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treebank import read_trees

from regard.data.trees import Tree
from regard.score.bracket_f1 import bracket_f1

LEFT_OUT = [",", ":", "``", "''", ".", "-NONE-"]
Node = tuple[str, frozenset[int]]


def naive(tree: Tree, gold_tags: list[str]) -> list[Node]:
    """Every phrase as its label and the numbers of its words that are no punctuation."""
    found: list[Node] = []
    numbers = iter(range(len(gold_tags)))

    def held(node: Tree) -> frozenset[int]:
        if isinstance(node.children[0], str):
            number = next(numbers)
            return frozenset() if gold_tags[number] in LEFT_OUT else frozenset({number})
        words = frozenset[int]().union(*[held(child) for child in node.children if isinstance(child, Tree)])
        label = node.label.partition("-")[0].partition("=")[0]
        if words and label not in ["TOP", "S1", "ROOT"]:
            found.append(("ADVP" if label == "PRT" else label, words))
        return words

    held(tree)
    return found


def naive_counts(guess: Tree, truth: Tree) -> tuple[int, int, int]:
    tags = list(truth.tags)
    found, wanted = naive(guess, tags), naive(truth, tags)
    unmatched, n_matched = list(wanted), 0
    for bracket in found:
        if bracket in unmatched:
            unmatched.remove(bracket)
            n_matched += 1
    return n_matched, len(found), len(wanted)


def agrees(guesses: list[Tree], truths: list[Tree]) -> None:
    ours = bracket_f1(guesses, truths)
    each = [naive_counts(guess, truth) for guess, truth in zip(guesses, truths, strict=True)]
    assert (ours.n_matched, ours.n_predicted, ours.n_gold) == tuple(map(sum, zip(*each, strict=True)))
    assert ours.n_exact == sum(len(set(counts)) == 1 for counts in each)


def drawn(draws: random.Random, leaves: list[Tree]) -> Tree:
    """A random tree over these leaves, with chains, punctuation and functions."""
    label = draws.choice(["S", "NP", "VP-TMP", "PRT", "ADVP", "TOP", "NP=1"])
    if len(leaves) == 1:
        return Tree(label, (drawn(draws, leaves) if draws.random() < 0.3 else leaves[0],))
    cut = draws.randrange(1, len(leaves))
    parts = (leaves[:cut], leaves[cut:])
    children: list[Tree] = []
    for part in parts:
        children += part if draws.random() < 0.3 else [drawn(draws, part)]
    return Tree(label, tuple(children))


@given(n=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_random_trees_score_as_naively(n: int, seed: int) -> None:
    draws = random.Random(seed)

    def leaves() -> list[Tree]:
        return [Tree(draws.choice(["NN", "VB", ",", ".", "$", "-NONE-"]), (f"w{i}",)) for i in range(n)]

    pairs = [(drawn(draws, leaves()), drawn(draws, leaves())) for _ in range(4)]
    agrees([a for a, _ in pairs], [b for _, b in pairs])
    same = [b for _, b in pairs]
    assert bracket_f1(same, same).exact == 1.0


@pytest.mark.data
@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="REGARD_DATA is not set")
def test_damaged_trees_of_the_treebank_score_as_naively() -> None:
    draws = random.Random(0)
    truths = list(read_trees(Path(os.environ["REGARD_DATA"]) / "treebank"))[::10]

    def damaged(tree: Tree) -> Tree:
        children: list[Tree | str] = []
        for child in tree.children:
            if isinstance(child, str):
                children.append(child)
                continue
            worse = damaged(child)
            is_gone = draws.random() < 0.1 and not worse.is_tag
            children += worse.children if is_gone else [worse]
        return Tree("X" if draws.random() < 0.1 else tree.label, tuple(children))

    guesses = [damaged(tree) for tree in truths]
    agrees(guesses, truths)
    assert 0.5 < bracket_f1(guesses, truths).f1 < 0.95
