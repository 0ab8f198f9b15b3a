"""Trees drawn as text and as SVG."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.data.trees import Tree, parse_trees
from regard.report.trees import PER_COLUMN, tree_svg, tree_text

SVG = "{http://www.w3.org/2000/svg}"


def one(text: str) -> Tree:
    (tree,) = parse_trees([text])
    return tree


def test_a_tree_in_the_terminal() -> None:
    drawn = tree_text(one("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (PRP it))) (. .))"))
    assert drawn.split("\n") == [
        "            S",
        "   ┌────────┴─┬──────┐",
        "   NP         VP     .",
        " ┌─┴──┐    ┌──┴──┐   │",
        " DT   NN  VBZ    NP  │",
        " │    │    │     │   │",
        " │    │    │    PRP  │",
        " │    │    │     │   │",
        "the  dog  sees   it  .",
    ]


def test_a_label_wider_than_its_words_makes_room() -> None:
    assert tree_text(one("(S (WHADVP a) b)")).split("\n") == [
        "     S",
        "  ┌──┴──┐",
        "WHADVP  │",
        "  │     │",
        "  a     b",
    ]


def test_wide_letters_take_two_columns() -> None:
    lines = tree_text(one("(S (A 日本) (B b))")).split("\n")
    assert lines[-1] == "日本  b"
    assert {cell_len(line) for line in lines[1:]} == {7}


def test_a_tree_too_wide_for_the_terminal_lies_on_its_side() -> None:
    tree = one("(S (NP (DT the) (NN dog)) (VP barks loudly))")
    widest = max(map(cell_len, tree_text(tree).split("\n")))
    assert tree_text(tree, width=widest) == tree_text(tree)
    assert tree_text(tree, width=widest - 1).split("\n") == [
        "S",
        "├─ NP",
        "│  ├─ DT the",
        "│  └─ NN dog",
        "└─ VP",
        "   ├─ barks",
        "   └─ loudly",
    ]


def test_nothing_that_a_terminal_acts_on_is_printed() -> None:
    tree = Tree("S", (Tree("NN", ("\x1b[31mred",)), "\x07"))
    for drawn in (tree_text(tree), tree_text(tree, width=1), tree_svg(tree)):
        assert "\x1b" not in drawn
        assert "\x07" not in drawn
        assert "\ufffd[31mred" in drawn


def test_an_svg_shows_every_label_and_word_and_escapes_them() -> None:
    tree = Tree("S<b>", (Tree("NN", ("<script>alert(1)</script>",)), Tree("CC", ("\"&'",))))
    drawn = tree_svg(tree)
    root = ElementTree.fromstring(drawn)
    shown = [text.text for text in root.iter(f"{SVG}text")]
    assert sorted(map(str, shown)) == sorted(["S<b>", "NN", "<script>alert(1)</script>", "CC", "\"&'"])
    assert root.get("aria-label") == "<script>alert(1)</script> \"&'"
    assert "<script" not in drawn
    assert not re.search(r"\b(href|src|url)\b", drawn)  # nothing is fetched


labels = st.sampled_from(["S", "NP", "WHADVP"])
words = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=6)


def over(children: st.SearchStrategy[Tree | str]) -> st.SearchStrategy[Tree]:
    return st.builds(lambda label, found: Tree(label, tuple(found)), labels, st.lists(children, min_size=1, max_size=4))


trees = over(st.recursive(words, over, max_leaves=10))


@given(tree=trees)
def test_every_level_has_its_rows_and_the_last_is_the_sentence(tree: Tree) -> None:
    lines = tree_text(tree).split("\n")
    assert len(lines) == 2 * tree.depth + 1
    assert lines[-1].split() == list(tree.words)


@given(tree=trees)
def test_what_is_drawn_in_an_svg_stays_inside_and_words_do_not_meet(tree: Tree) -> None:
    root = ElementTree.fromstring(tree_svg(tree))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    texts = [(t.text or "", float(t.get("x", "")), float(t.get("y", ""))) for t in root.iter(f"{SVG}text")]
    bounds = [(x - PER_COLUMN / 2 * cell_len(text), x + PER_COLUMN / 2 * cell_len(text)) for text, x, _ in texts]
    assert all(0 < left < right < width for left, right in bounds if left < right)
    assert all(0 < y < height for _, _, y in texts)
    bottom = max(y for _, _, y in texts)
    row = [(text, *bound) for (text, _, y), bound in zip(texts, bounds, strict=True) if y == bottom]
    assert [text for text, _, _ in row] == list(tree.words)
    assert all(right < left for (_, _, right), (_, left, _) in pairwise(row))
    n_brackets = len(list(tree.brackets()))
    assert len(list(root.iter(f"{SVG}line"))) == n_brackets - 1 + len(tree.words)
