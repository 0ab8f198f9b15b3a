"""Files of trees as pairs: the words are the source, and the tree as a sequence of tokens is the target.

Of (S (NP (DT the) (NN dog)) (VP (VBZ barks))) the source is "the dog barks" and the target, with slots for words,
"(S (NP XX XX )NP (VP XX )VP )S".
"""

from __future__ import annotations

from collections.abc import Iterator

from regard.data.pairs import Pairs, TextPair
from regard.data.reading import BadLine, read_lines
from regard.data.source import TextFile
from regard.data.tree_lines import LineForm, linearised, tree_of
from regard.data.tree_stretches import Stretches
from regard.data.trees import Tree, trees_of
from regard.errors import RegardError

FORMS = {"slot": LineForm(), "tag": LineForm(words="tag"), "bare": LineForm(has_tags=False)}
"""How trees are written for each `data.tree_words`."""


def tree_sides(file: TextFile, tree_words: str) -> Iterator[tuple[str, TextPair | BadLine]]:
    """Words and tokens of every tree, or what is wrong with it, and where it stands."""
    place = f"{file.name},"
    for stretch in Stretches(read_lines(file.path, file.name, file.encoding)):
        first = stretch[0].number
        bad = [(each.number, each.line) for each in stretch if isinstance(each.line, BadLine)]
        if bad:
            yield f"{place} line {bad[0][0]}", bad[0][1]
            continue
        lines = [each.line for each in stretch if isinstance(each.line, str)]
        try:
            trees = list(trees_of(lines, file.name, first_line=first))
        except RegardError as error:
            yield place, BadLine("broken tree", str(error).removeprefix(f"{place} "))
            continue
        for tree in trees:
            yield f"{place} line {first}:", _sides(tree, tree_words)


def gold_tree(pairs: Pairs, i: int, tree_words: str) -> Tree:
    """The tree that pair i was read from. Which words are punctuation is in its tags, whatever the target says."""
    tags = pairs.tags_of_words(i)
    assert tags is not None or tree_words != "slot", "pairs whose targets have slots keep the tags of their words"
    return tree_of(pairs.target_text(i).split(), pairs.source_text(i).split(), tags, FORMS[tree_words])


def _sides(tree: Tree, tree_words: str) -> TextPair | BadLine:
    try:
        target = " ".join(linearised(tree, FORMS[tree_words]))
    except RegardError as error:
        return BadLine("no parts of speech", f"{error} Trees that have none are read with data.tree_words: bare.")
    return TextPair(" ".join(tree.words), target, " ".join(tree.tags) if tree_words == "slot" else "")
