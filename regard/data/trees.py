"""Constituency trees: what one is, how the bracketed text of a treebank becomes one, and what is usually cleaned off.

A `.mrg` file of the Penn Treebank holds trees such as

    ( (S
        (NP-SBJ (DT the) (NN dog) )
        (VP (VBD wanted)
          (S (NP-SBJ (-NONE- *) ) (VP (TO to) (VP (VB bark) ))))
        (. .) ))

over as many lines as it likes, in an outer bracket without a label. One tree a line reads just as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from regard.errors import RegardError

TRACE = "-NONE-"  # the tag of what was moved away or left unsaid; no word was written there
ROOT = "TOP"  # the label of an outer bracket that has none and holds several trees
MAX_DEPTH = 200  # brackets in brackets; the deepest of 3,914 trees of the Wall Street Journal has 29
_TOKEN = re.compile(r"[()]|[^\s()]+")
_NOT_A_NAME = re.compile(r"[\s()]")


@dataclass(frozen=True)
class Tree:
    """A label over words and further trees, in the order of the sentence.

    >>> dog = Tree("NP", (Tree("DT", ("the",)), Tree("NN", ("dog",))))
    >>> dog.words, dog.tags, dog.depth
    (('the', 'dog'), ('DT', 'NN'), 2)
    """

    label: str
    children: tuple[Tree | str, ...]

    def __post_init__(self) -> None:
        if not self.label or _NOT_A_NAME.search(self.label):
            raise RegardError(f"A tree's label is a text without white space and brackets, not {self.label!r}.")
        if not self.children:
            raise RegardError(f"The bracket '{self.label}' holds nothing: give it a word or a tree.")
        for child in self.children:
            if isinstance(child, str) and (not child or child.split() != [child]):
                raise RegardError(f"A word of a tree is a text without white space, not {child!r}.")

    @property
    def is_tag(self) -> bool:
        """A bracket around one word: where a treebank has parts of speech, this is one."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for word, _ in self._leaves())

    @property
    def tags(self) -> tuple[str, ...]:
        """The part of speech of every word; an error where a word has no bracket to itself."""
        for word, over in self._leaves():
            if not over.is_tag:
                raise RegardError(
                    f"The word '{word}' stands beside others in the bracket '{over.label}', so that it has no part of "
                    "speech: these trees have no tags."
                )
        return tuple(over.label for _, over in self._leaves())

    @property
    def depth(self) -> int:
        return 1 + max((child.depth for child in self.children if isinstance(child, Tree)), default=0)

    def brackets(self) -> Iterator[tuple[Tree, int, int]]:
        """Every tree in this one, itself first, with the words [start, end) it covers."""
        yield from self._brackets(0)[0]

    def _brackets(self, start: int) -> tuple[list[tuple[Tree, int, int]], int]:
        inside: list[tuple[Tree, int, int]] = []
        end = start
        for child in self.children:
            if isinstance(child, str):
                end += 1
            else:
                found, end = child._brackets(end)
                inside += found
        return [(self, start, end), *inside], end

    def _leaves(self) -> Iterator[tuple[str, Tree]]:
        """Every word, and the bracket it stands in."""
        for child in self.children:
            if isinstance(child, str):
                yield child, self
            else:
                yield from child._leaves()


def parse_trees(lines: Iterable[str], name: str = "the text", *, first_line: int = 1) -> Iterator[Tree]:
    """The trees that stand in lines of text, without traces and functions, as parsers are trained and scored.

    Errors call the text `name`, and its first line `first_line`.

    >>> [tree.words for tree in parse_trees(["( (S (NP-SBJ (-NONE- *)) (VP (VB go))) )", "(NP (NN", "dog))"])]
    [('go',), ('dog',)]
    """
    for tree, line in parse_brackets(lines, name, first_line):
        kept = remove_traces(tree)
        if kept is None:
            raise RegardError(f"{name}, line {line}: this tree has no words, only traces ({TRACE}). Remove it.")
        yield remove_functions(kept)


def parse_brackets(lines: Iterable[str], name: str = "the text", first_line: int = 1) -> Iterator[tuple[Tree, int]]:
    """Every tree as it stands in lines of text, and the line on which it begins."""
    return _Brackets(name).read(lines, first_line)


def remove_traces(tree: Tree) -> Tree | None:
    """The tree of the words that were said: traces go, and every bracket that held nothing else; None if all goes."""
    if tree.label == TRACE:
        return None
    kept = [child if isinstance(child, str) else remove_traces(child) for child in tree.children]
    children = tuple(child for child in kept if child is not None)
    return Tree(tree.label, children) if children else None


def remove_functions(tree: Tree) -> Tree:
    """Every label up to its first - or =: what a phrase is, not what it does (-SBJ) or goes with (-1, =2)."""
    children = tuple(child if isinstance(child, str) else remove_functions(child) for child in tree.children)
    return Tree(strip_functions(tree.label), children)


def strip_functions(label: str) -> str:
    """A label that begins with - is a name as it stands.

    >>> [strip_functions(label) for label in ("NP-SBJ-1", "NP=2", "-LRB-", "PRP$")]
    ['NP', 'NP', '-LRB-', 'PRP$']
    """
    return label if label[0] in "-=" else re.split("[-=]", label, maxsplit=1)[0]


class _Open:
    """A bracket that was opened on `line` and is not closed yet."""

    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column
        self.label = ""
        self.children: list[Tree | str] = []


class _Brackets:
    """Reads brackets one token at a time, with no more than the open ones in hand."""

    def __init__(self, name: str) -> None:
        self.name, self.line = name, 0
        self.open: list[_Open] = []

    def read(self, lines: Iterable[str], first_line: int) -> Iterator[tuple[Tree, int]]:
        """Every tree with the line on which it begins."""
        for self.line, text in enumerate(lines, first_line):
            for match in _TOKEN.finditer(text):
                token = match[0]
                if token == "(":
                    self._begin(match.start())
                elif token == ")":
                    first = self.open[0].line if self.open else self.line
                    if (done := self._end()) is not None:
                        yield done, first
                else:
                    self._name(token)
        if self.open:
            self._refuse_open(len(self.open))

    def _begin(self, column: int) -> None:
        if len(self.open) == MAX_DEPTH:
            first = self.open[0].line
            self._refuse(
                self.line, f"more than {MAX_DEPTH} brackets are open here; the first was opened on line {first}"
            )
        if len(self.open) > 1:
            self._check_label()
        self.open.append(_Open(self.line, column))

    def _check_label(self) -> None:
        top = self.open[-1]
        if top.label:
            return
        if top.column == 0 and top.line > self.open[0].line:  # it is no part of this tree: it begins the next
            self._refuse_open(len(self.open) - 1)
        self._refuse(top.line, "a bracket inside a tree has no label; write one after '('")

    def _refuse_open(self, n_open: int) -> NoReturn:
        missing = "1 closing bracket is" if n_open == 1 else f"{n_open} closing brackets are"
        self._refuse(self.open[0].line, f"this tree is never closed: {missing} missing")

    def _name(self, token: str) -> None:
        if not self.open:
            self._refuse(self.line, f"'{token[:40]}' stands outside of any bracket")
        top = self.open[-1]
        if not top.label and not top.children:
            top.label = token
        else:
            top.children.append(token)

    def _end(self) -> Tree | None:
        """Close the last bracket; a tree where it was the outermost."""
        if not self.open:
            self._refuse(self.line, "')' closes a bracket that was never opened")
        top = self.open.pop()
        if not top.children:
            what = f"the bracket '{top.label}' has no words" if top.label else "a bracket is empty"
            self._refuse(top.line, f"{what}; remove it, or write its words")
        if not self.open:
            return self._root(top)
        self.open[-1].children.append(Tree(top.label, tuple(top.children)))
        return None

    def _root(self, top: _Open) -> Tree:
        if top.label:
            return Tree(top.label, tuple(top.children))
        words = [child for child in top.children if isinstance(child, str)]
        if words:
            self._refuse(top.line, f"the word '{words[0][:40]}' stands in the outer bracket, which has no label")
        only = top.children[0]
        return only if len(top.children) == 1 and isinstance(only, Tree) else Tree(ROOT, tuple(top.children))

    def _refuse(self, line: int, why: str) -> NoReturn:
        raise RegardError(f"{self.name}, line {line}: {why}.")
