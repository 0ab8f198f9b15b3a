"""Any tree survives every form it can be written in."""

from hypothesis import given
from hypothesis import strategies as st

from regard.data.tree_lines import LineForm, build_tree, indent_tree, linearise, to_brackets
from regard.data.trees import Tree, parse_brackets

labels = st.sampled_from(["S", "NP", "VP", "PP", "X"])
tags = st.sampled_from(["NN", "VB", ",", ".", "-LRB-", "XX", "``", "PRP$"])
words = st.text(st.characters(exclude_characters="()", exclude_categories=["Z", "C"]), min_size=1, max_size=4)
tagged = st.builds(lambda tag, word: Tree(tag, (word,)), tags, words)


def over(children: st.SearchStrategy[Tree | str]) -> st.SearchStrategy[Tree]:
    return st.builds(lambda label, found: Tree(label, tuple(found)), labels, st.lists(children, min_size=1, max_size=4))


add_tags = over(st.recursive(tagged, over, max_leaves=12))
without_tags = over(st.recursive(words, over, max_leaves=12))


@given(tree=add_tags)
def test_a_tree_with_tags_comes_back_from_its_tokens(tree: Tree) -> None:
    slots, named = (LineForm(words=words) for words in ("slot", "tag"))
    assert build_tree(linearise(tree, slots), tree.words, tree.tags, slots) == tree
    assert build_tree(linearise(tree, named), tree.words, None, named) == tree


@given(tree=without_tags)
def test_a_tree_without_tags_comes_back_from_its_tokens(tree: Tree) -> None:
    form = LineForm(has_tags=False)
    assert build_tree(linearise(tree, form), tree.words, None, form) == tree


@given(tree=without_tags | add_tags)
def test_written_trees_read_back(tree: Tree) -> None:
    text = f"{to_brackets(tree)}\n{indent_tree(tree)}\n( {to_brackets(tree)} )"
    assert [found for found, _ in parse_brackets(text.split("\n"))] == [tree] * 3


@given(tree=without_tags | add_tags)
def test_brackets_cover_the_words_they_hold(tree: Tree) -> None:
    for inner, start, end in tree.brackets():
        assert tree.words[start:end] == inner.words
