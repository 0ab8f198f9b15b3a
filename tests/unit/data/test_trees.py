"""Trees read from bracketed text: what is kept, what is cleaned off, and what is refused where."""

import os
from pathlib import Path

import pytest
from treebank import read_trees

from regard.data.trees import MAX_DEPTH, Tree, parse_brackets, parse_trees, remove_functions, remove_traces
from regard.errors import RegardError

WANTED = """
( (S
    (NP-SBJ-1 (DT the) (NN dog) )
    (VP (VBD wanted)
      (S (NP-SBJ=2 (-NONE- *-1) ) (VP (TO to) (VP (VB bark) ))))
    (. .) ))
(FRAG (-LRB- -LRB-)
(NN cat)   (-RRB- -RRB-))
"""

DOG = Tree("NP", (Tree("DT", ("the",)), Tree("NN", ("dog",))))
BARK = Tree("S", (Tree("VP", (Tree("TO", ("to",)), Tree("VP", (Tree("VB", ("bark",)),)))),))
FIRST = Tree("S", (DOG, Tree("VP", (Tree("VBD", ("wanted",)), BARK)), Tree(".", (".",))))


def test_trees_over_several_lines_lose_traces_functions_and_the_outer_bracket() -> None:
    first, second = parse_trees(WANTED.split("\n"))
    assert first == FIRST
    assert second.tags == ("-LRB-", "NN", "-RRB-")
    assert (first.words, first.depth) == (("the", "dog", "wanted", "to", "bark", "."), 6)


def test_traces_and_functions_can_be_kept() -> None:
    first, _ = next(parse_brackets(WANTED.split("\n")))
    assert first.words == ("the", "dog", "wanted", "*-1", "to", "bark", ".")
    assert [t.label for t, _, _ in first.brackets()][1] == "NP-SBJ-1"
    cleaned = remove_traces(first)
    assert cleaned is not None
    assert remove_functions(cleaned) == FIRST


def test_brackets_come_with_the_words_they_cover() -> None:
    spans = [(t.label, start, end) for t, start, end in FIRST.brackets() if not t.is_tag]
    assert spans == [("S", 0, 6), ("NP", 0, 2), ("VP", 2, 5), ("S", 3, 5), ("VP", 3, 5), ("VP", 4, 5)]


def test_an_outer_bracket_with_several_trees_gets_a_label() -> None:
    (tree,) = parse_trees(["( (NP (NN a)) (NP (NN b)) )"])
    assert (tree.label, len(tree.children)) == ("TOP", 2)


def test_words_may_stand_beside_phrases_and_then_have_no_tags() -> None:
    (tree,) = parse_trees(["(S (NP dogs ) (VP chase (NP cats ) ) )"])
    assert tree.words == ("dogs", "chase", "cats")
    with pytest.raises(RegardError, match="'chase' stands beside others in the bracket 'VP'"):
        _ = tree.tags


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(S (NN a))\n(S (NP (NN b))\n(S (NN c))", "line 2: this tree is never closed: 1 closing bracket"),
        ("( (S\n  (NN a)\n( (S\n  (NN b)))", "line 1: this tree is never closed: 2 closing brackets are missing"),
        ("(S (NN a)))\n", r"line 1: '\)' closes a bracket that was never opened"),
        ("(S (NN a))\ndog", "line 2: 'dog' stands outside of any bracket"),
        ("(S (NP\n))", "line 1: the bracket 'NP' has no words"),
        ("(S\n())", "line 2: a bracket is empty"),
        ("()", "line 1: a bracket is empty"),
        ("(S\n ( (NN a)))", "line 2: a bracket inside a tree has no label"),
        ("((NN a)\nb)", "line 1: the word 'b' stands in the outer bracket"),
        ("\n(S (NP (-NONE- *)))", "line 2: this tree has no words, only traces"),
        ("(A " * (MAX_DEPTH + 1), "line 1: more than 200 brackets are open here; the first was opened on line 1"),
    ],
)  # fmt: skip
def test_a_broken_tree_is_refused_with_its_file_and_line(text: str, says: str) -> None:
    with pytest.raises(RegardError, match=f"bad.mrg, {says}"):
        list(parse_trees(text.split("\n"), "bad.mrg"))


def test_as_many_brackets_as_allowed_are_read() -> None:
    (tree,) = parse_trees(["(A " * MAX_DEPTH + "a" + ")" * MAX_DEPTH])
    assert tree.depth == MAX_DEPTH
    assert next(tree.brackets())[1:] == (0, 1)


@pytest.mark.parametrize(
    ("label", "children", "says"),
    [
        ("", ("a",), "label is a text without white space"),
        ("A(", ("a",), "label is a text without white space"),
        ("A", (), "The bracket 'A' holds nothing"),
        ("A", ("two words",), "A word of a tree is a text without white space, not 'two words'"),
        ("A", ("",), "A word of a tree is a text without white space"),
    ],
)
def test_a_tree_that_cannot_be_written_is_never_built(label: str, children: tuple[str, ...], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        Tree(label, children)


@pytest.mark.data
@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="REGARD_DATA is not set")
def test_the_whole_treebank_is_read() -> None:
    trees = list(read_trees(Path(os.environ["REGARD_DATA"]) / "treebank"))
    assert (len(trees), sum(len(tree.words) for tree in trees)) == (3914, 94084)
    labels = {inner.label for tree in trees for inner, _, _ in tree.brackets()}
    assert {label for label in labels if "-" in label or "=" in label} == {"-LRB-", "-RRB-"}
