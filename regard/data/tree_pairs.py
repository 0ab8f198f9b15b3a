"""Files of trees as pairs: the words are the source, and the tree as a sequence of tokens is the target.

Of (S (NP (DT the) (NN dog)) (VP (VBZ barks))) the source is "the dog barks" and the target, with slots for words,
"(S (NP XX XX )NP (VP XX )VP )S".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.data.pair_lines import BadLine, read_lines
from regard.data.source import TextFile
from regard.data.tree_lines import LineForm, linearised, tree_of
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


@dataclass
class _Stretch:
    """Lines from `first` on that hold whole trees, if nothing is wrong with them."""

    first: int
    lines: list[str | BadLine]


def tree_sides(file: TextFile, tree_words: str, skips_bad: bool) -> Iterator[tuple[str, tuple[str, str] | BadLine]]:
    """Words and tokens of every tree, or what is wrong with it, and where it stands.

    With `skips_bad` a tree begins where a line begins with a bracket, even if another is still open: so that one that
    is never closed takes no more with it than itself.
    """
    form, place = FORMS[tree_words], f"{file.name},"
    for stretch in _stretches(read_lines(file.path, file.name), skips_bad):
        bad = [(number, line) for number, line in enumerate(stretch.lines, stretch.first) if isinstance(line, BadLine)]
        if bad:
            yield f"{place} line {bad[0][0]}", bad[0][1]
            continue
        lines = [line for line in stretch.lines if isinstance(line, str)]
        try:
            trees = list(trees_of(lines, file.name, first_line=stretch.first))
        except RegardError as error:
            yield place, BadLine("broken tree", str(error).removeprefix(f"{place} "))
            continue
        for tree in trees:
            yield f"{place} line {stretch.first}:", _sides(tree, form)


def gold_tree(target: str, words: Sequence[str], tree_words: str) -> Tree:
    """The tree that a pair's target says; with slots, only punctuation gets its part of speech back."""
    tags = [PUNCTUATION_TAGS.get(word, "XX") for word in words] if tree_words == "slot" else None
    return tree_of(target.split(), words, tags, FORMS[tree_words])


def _sides(tree: Tree, form: LineForm) -> tuple[str, str] | BadLine:
    try:
        return " ".join(tree.words), " ".join(linearised(tree, form))
    except RegardError as error:
        return BadLine("no parts of speech", f"{error} Trees that have none are read with data.tree_words: bare.")


def _stretches(lines: Iterator[str | BadLine], skips_bad: bool) -> Iterator[_Stretch]:
    """Lines up to where a tree begins, one after the other."""
    stretch, depth = _Stretch(1, []), 0
    for number, line in enumerate(lines, 1):
        if isinstance(line, str) and line.startswith("(") and (skips_bad or depth <= 0) and stretch.lines:
            yield stretch
            stretch, depth = _Stretch(number, []), 0
        stretch.lines.append(line)
        depth += 0 if isinstance(line, BadLine) else line.count("(") - line.count(")")
    yield stretch
