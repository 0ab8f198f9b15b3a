"""Trees as sequences of tokens and as bracketed text."""

import pytest

from regard.data.tree_lines import LineForm, build_tree, indent_tree, linearise, to_brackets
from regard.data.trees import Tree, parse_trees
from regard.errors import RegardError

TEXT = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))"
(TREE,) = parse_trees([TEXT])
WORDS = ["the", "dog", "barks", "."]


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (LineForm(), "(S (NP XX XX )NP (VP XX )VP XX )S"),
        (LineForm(words="tag"), "(S (NP DT NN )NP (VP VBZ )VP . )S"),
        (LineForm(has_tags=False), "(S (NP (DT XX )DT (NN XX )NN )NP (VP (VBZ XX )VBZ )VP (. XX ). )S"),
    ],
)
def test_a_tree_becomes_tokens_and_comes_back(form: LineForm, line: str) -> None:
    assert " ".join(linearise(TREE, form)) == line
    tags = None if form.words == "tag" or not form.has_tags else TREE.tags
    assert build_tree(line.split(), WORDS, tags, form) == TREE


def test_without_tags_the_words_stand_in_their_phrases() -> None:
    (tree,) = parse_trees(["(S (NP dogs) (VP chase (NP cats)))"])
    form = LineForm(has_tags=False)
    assert " ".join(linearise(tree, form)) == "(S (NP XX )NP (VP XX (NP XX )NP )VP )S"
    assert build_tree(linearise(tree, form), ["dogs", "chase", "cats"], form=form) == tree


def test_a_slot_that_says_nothing_is_the_tag_of_its_word() -> None:
    assert build_tree(["(NP", "XX", ")NP"], ["dogs"]) == Tree("NP", (Tree("XX", ("dogs",)),))


def test_given_tags_win_over_predicted_ones() -> None:
    form = LineForm(words="tag")
    assert build_tree(["(NP", "DT", ")NP"], ["dog"], ["NN"], form).tags == ("NN",)


@pytest.mark.parametrize(
    ("line", "words", "says"),
    [
        ("(S XX )S", "a b", "has 1 places for words, but the sentence has 2 words"),
        ("(S XX XX )NP", "a b", r"Token 4, '\)NP', closes the bracket '\(S': it should be '\)S'"),
        ("(S (NP )NP XX )S", "a", r"Token 3, '\)NP', closes a bracket that holds nothing"),
        ("(S XX )S XX", "a b", "Token 4, 'XX', comes after the end of the tree"),
        ("XX (S XX )S", "a b", "Token 1, 'XX', comes before the first bracket"),
        (")S (S XX )S", "a", r"Token 1, '\)S', comes before the first bracket"),
        ("(S (NP XX )NP", "a", r"ends with 1 open bracket\(s\)"),
        ("", "", r"ends with 0 open bracket\(s\)"),
        ("(S " * 201 + "XX", "a", "more than 200 brackets are open"),
    ],
)
def test_a_sequence_that_is_no_tree_is_refused(line: str, words: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        build_tree(line.split(), words.split())


def test_forms_and_trees_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RegardError, match="trees without tags need words: slot"):
        LineForm(words="tag", has_tags=False)
    with pytest.raises(RegardError, match="2 words and 1 tags"):
        build_tree(["(S", "XX", "XX", ")S"], ["a", "b"], ["NN"])
    with pytest.raises(RegardError, match="'chase' stands beside others"):
        linearise(next(parse_trees(["(VP chase (NP cats))"])))
    with pytest.raises(RegardError, match=r"\(NN dog\) is a part of speech alone"):
        linearise(Tree("NN", ("dog",)))


def test_one_line_and_indented_text_read_back_as_the_same_trees() -> None:
    assert to_brackets(TREE) == TEXT
    assert indent_tree(TREE) == TEXT
    wide = Tree("S", (TREE, TREE, TREE))
    assert indent_tree(wide) == f"(S\n  {TEXT}\n  {TEXT}\n  {TEXT})"
    for write in (to_brackets, indent_tree):
        assert list(parse_trees("\n\n".join(map(write, (wide, TREE))).split("\n"))) == [wide, TREE]
