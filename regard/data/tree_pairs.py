"""Files of trees as pairs: the words are the source, and the tree as a sequence of tokens is the target.

Of (S (NP (DT the) (NN dog)) (VP (VBZ barks))) the source is "the dog barks" and the target, with slots for words,
"(S (NP XX XX )NP (VP XX )VP )S".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regard.data.pair_lines import BadLine, read_lines
from regard.data.source import TextFile
from regard.data.tree_lines import LineForm, linearised, tree_of
from regard.data.tree_stretches import Stretches
from regard.data.trees import Tree, trees_of
from regard.errors import RegardError

FORMS = {"slot": LineForm(), "tag": LineForm(words="tag"), "bare": LineForm(has_tags=False)}
"""How trees are written for each `data.tree_words`."""

# With XX for every word, scoring cannot read off the tags which words are punctuation. Of the 94,084 words of the Penn
# Treebank's sample this tells all but 11 right; ' is left out, because most often it is a genitive.
PUNCTUATION_TAGS = {
    ",": ",", ".": ".", "?": ".", "!": ".", "``": "``", "`": "``", "''": "''",
    ":": ":", ";": ":", "-": ":", "--": ":", "...": ":",
}  # fmt: skip


def tree_sides(file: TextFile, tree_words: str) -> Iterator[tuple[str, tuple[str, str] | BadLine]]:
    """Words and tokens of every tree, or what is wrong with it, and where it stands."""
    form, place = FORMS[tree_words], f"{file.name},"
    for stretch in Stretches(read_lines(file.path, file.name)):
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
            yield f"{place} line {first}:", _sides(tree, form)


def gold_tree(target: str, words: Sequence[str], tree_words: str) -> Tree:
    """The tree that a pair's target says; with slots, only punctuation gets its part of speech back."""
    tags = [PUNCTUATION_TAGS.get(word, "XX") for word in words] if tree_words == "slot" else None
    return tree_of(target.split(), words, tags, FORMS[tree_words])


def _sides(tree: Tree, form: LineForm) -> tuple[str, str] | BadLine:
    try:
        return " ".join(tree.words), " ".join(linearised(tree, form))
    except RegardError as error:
        return BadLine("no parts of speech", f"{error} Trees that have none are read with data.tree_words: bare.")
