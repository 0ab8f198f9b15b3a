"""What may come next in a parse: by hand, against all trees there are, and for trees of a treebank."""

import itertools
import os
from pathlib import Path

import pytest
import torch
from treebank import read_trees

from regard.data.tree_lines import LineForm, TreeLimits, build_tree, linearise
from regard.data.trees import Tree, parse_trees
from regard.decode.stepper import Constraint
from regard.decode.tree_constraint import TreeConstraint, TreeState
from regard.errors import RegardError

TOKENS = ["<eos>", "<unk>", "XX", "(S", ")S", "(NP", ")NP"]


def after(constraint: TreeConstraint, line: str, row: int = 0) -> TreeState:
    state = constraint.start(row)
    for token in line.split():
        assert constraint.allowed(state)[TOKENS.index(token)], token
        state = constraint.step(state, TOKENS.index(token))
    return state


def allowed(constraint: TreeConstraint, line: str, row: int = 0) -> str:
    return " ".join(TOKENS[i] for i in constraint.allowed(after(constraint, line, row)).nonzero().flatten().tolist())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "(S (NP"),
        ("(S", "XX (S (NP"),  # nothing to close yet
        ("(S XX", "XX (S (NP"),  # one word is left, and it must be in the outermost bracket
        ("(S (NP XX", "XX (S (NP )NP"),
        ("(S (NP XX )NP", "XX (S (NP"),
        ("(S (NP XX )NP XX", ")S"),
        ("(S XX XX )S", "<eos>"),
        ("(S (NP (S (NP (S", "XX (S (NP"),  # a sixth can be closed: chains of three and three, and a word between
        ("(S (NP (S (NP (S (NP", "XX"),
        ("(S (NP (S (NP XX", ")NP"),  # the second word is kept for the outermost bracket, whose chain would be four
        ("(S (NP (S XX", "XX (S )S (NP"),
        ("(S (NP (S XX )S", "XX (S (NP )NP"),
        ("(S (NP (S XX )S )NP", "XX (S (NP"),
        ("(S (NP (S XX XX", ")S"),
    ],
)
def test_what_may_come_next_for_two_words(line: str, expected: str) -> None:
    limits = TreeLimits(max_chain=3, extra_brackets=9)
    assert allowed(TreeConstraint(TOKENS, [2], stop=0, limits=limits), line) == expected


def test_a_chain_is_broken_by_a_word_that_is_kept_for_it() -> None:
    constraint = TreeConstraint(TOKENS, [2], stop=0, limits=TreeLimits(max_chain=1, extra_brackets=9))
    assert allowed(constraint, "(S (NP XX") == ")NP"  # the second word belongs beside the NP, not in it
    assert allowed(constraint, "(S (NP XX )NP") == "XX (S (NP"
    assert allowed(constraint, "(S (NP XX )NP (S") == "XX"


def test_brackets_and_depth_run_out() -> None:
    few = TreeConstraint(TOKENS, [9], stop=0, limits=TreeLimits(brackets_per_word=0.0, extra_brackets=2))
    assert allowed(few, "(S XX (NP XX XX") == "XX )NP"
    flat = TreeConstraint(TOKENS, [9], stop=0, limits=TreeLimits(max_depth=1))
    assert allowed(flat, "(S XX") == "XX"


def test_every_source_has_its_own_number_of_words() -> None:
    constraint = TreeConstraint(TOKENS, [1, 2], stop=0)
    assert allowed(constraint, "(S XX", row=0) == ")S"
    assert allowed(constraint, "(S XX", row=1) == "XX (S (NP"


def test_tags_as_slots() -> None:
    tokens = ["<eos>", "<unk>", "NN", "-LRB-", "(S", ")S", "<"]
    constraint = TreeConstraint(tokens, [1], stop=0, form=LineForm(words="tag"))
    state = constraint.step(constraint.start(0), 4)
    assert constraint.allowed(state).tolist() == [False, False, True, True, True, False, True]
    assert constraint.allowed(constraint.step(state, 3)).nonzero().tolist() == [[5]]


def finished(constraint: TreeConstraint, state: TreeState, line: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Everything the constraint allows from here on."""
    found = set()
    for token in constraint.allowed(state).nonzero().flatten().tolist():
        if token == 0:
            found.add(line)
        else:
            found |= finished(constraint, constraint.step(state, token), (*line, TOKENS[token]))
    return found


def longest_chain(tree: Tree) -> int:
    covering: dict[tuple[int, int], int] = {}
    for _, start, end in tree.brackets():
        covering[start, end] = covering.get((start, end), 0) + 1
    return max(covering.values())


@pytest.mark.parametrize(("n_words", "max_chain"), [(1, 2), (2, 1), (2, 2), (3, 3)])
def test_exactly_the_trees_within_the_limits_can_be_written(n_words: int, max_chain: int) -> None:
    tokens, n_brackets = TOKENS[:5], 3
    limits = TreeLimits(max_chain=max_chain, brackets_per_word=0.0, extra_brackets=n_brackets)
    constraint = TreeConstraint(tokens, [n_words], stop=0, limits=limits)
    expected = set()
    for length in range(1, n_words + 2 * n_brackets + 1):
        for line in itertools.product(["XX", "(S", ")S"], repeat=length):
            if line.count("XX") == n_words and line.count("(S") == line.count(")S") <= n_brackets:
                try:
                    tree = build_tree(line, ["a"] * n_words, form=LineForm(has_tags=False))
                except RegardError:
                    continue
                if longest_chain(tree) <= max_chain:
                    expected.add(line)
    assert finished(constraint, constraint.start(0), ()) == expected
    assert max(len(line) for line in expected) + 1 <= limits.max_length(n_words)


def test_it_is_a_constraint_and_shares_its_masks() -> None:
    constraint: Constraint = TreeConstraint(TOKENS, [5, 7], stop=0)
    assert isinstance(constraint, Constraint)
    first, second = constraint.start(0), constraint.start(1)
    assert constraint.allowed(first) is constraint.allowed(second)
    assert constraint.allowed(first).dtype == torch.bool


@pytest.mark.parametrize(
    ("tokens", "n_words", "form", "says"),
    [
        (TOKENS, [3, 0], LineForm(), "Source 1 has 0 words"),
        (["<eos>", "XX"], [1], LineForm(), "no opening bracket"),
        (["<eos>", "XX", "(S", ")"], [1], LineForm(), r"has '\(S' but no '\)S' to close it"),
        (["<eos>", "NN", "(S", ")S"], [1], LineForm(), "no 'XX' to stand for a word"),
        (["<eos>", "<unk>", "(S", ")S"], [1], LineForm(words="tag"), "no tags to stand for a word"),
    ],
)
def test_a_vocabulary_that_cannot_write_trees_is_refused(
    tokens: list[str], n_words: list[int], form: LineForm, says: str
) -> None:
    with pytest.raises(RegardError, match=says):
        TreeConstraint(tokens, n_words, stop=0, form=form)


def follow(constraint: TreeConstraint, tokens: list[str], row: int, line: list[str]) -> bool:
    state = constraint.start(row)
    for token in line:
        if not constraint.allowed(state)[tokens.index(token)]:
            return False
        state = constraint.step(state, tokens.index(token))
    return bool(constraint.allowed(state)[0])


def test_a_tree_beyond_the_limits_cannot_be_written() -> None:
    (tree,) = parse_trees(["(S (S (S (S (S (NN a))))))"])
    assert not follow(TreeConstraint(TOKENS, [1], stop=0), TOKENS, 0, linearise(tree))
    assert follow(TreeConstraint(TOKENS, [1], stop=0, limits=TreeLimits(max_chain=5)), TOKENS, 0, linearise(tree))


@pytest.mark.data
@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="REGARD_DATA is not set")
def test_trees_of_the_treebank_can_be_written() -> None:
    trees = list(read_trees(Path(os.environ["REGARD_DATA"]) / "treebank"))[
        ::50
    ]  # all of them take half a minute where shapes are checked
    lines = [linearise(tree) for tree in trees]
    tokens = ["<eos>", *sorted({token for line in lines for token in line})]
    constraint = TreeConstraint(tokens, [len(tree.words) for tree in trees], stop=0)
    assert all(follow(constraint, tokens, row, line) for row, line in enumerate(lines))
