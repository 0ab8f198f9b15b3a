"""Files of trees as pairs: the words are the source, and the tree as a sequence of tokens is the target.

Of (S (NP (DT the) (NN dog)) (VP (VBZ barks))) the source is "the dog barks" and the target, with slots for words,
"(S (NP XX XX )NP (VP XX )VP )S".

A file is read in stretches: lines that hold whole trees, or a broken one and no more than it.

A line that stands no deeper than the stretch before it begins another, unless a tree is open: then it belongs to that
tree, which need not be indented:

    (S
    (NP (DT the) (NN dog))
    (VP (VBZ barks)))

Only where the tree turns out never to be closed is the reading begun again, at the next line that may begin one. So
whole trees are read the same, whatever is broken around them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple

from regard.data.pairs import Pairs, TextPair
from regard.data.reading import MAX_LINE, BadLine, read_lines
from regard.data.source import TextFile
from regard.data.tree_lines import LineForm, build_tree, linearise
from regard.data.trees import MAX_DEPTH, Tree, parse_trees
from regard.errors import RegardError

FORMS = {"slot": LineForm(), "tag": LineForm(words="tag"), "bare": LineForm(has_tags=False)}
"""How trees are written for each `data.tree_words`."""
FREE_LINES = 3_000_000  # that may be read again after trees that are never closed: each can cost MAX_LINE characters
MAX_AGAIN = 4  # times as many as the file has had lines so far, beyond those: else a small file takes minutes
_LABEL = re.compile(r"\s*\(\s*([^\s()]*)")
_OUTER = re.compile(r"\s*\(\s*\(")  # a bracket without a label: only the outermost may have none


def read_tree_pairs(file: TextFile, tree_words: str) -> Iterator[tuple[str, TextPair | BadLine]]:
    """Words and tokens of every tree, or what is wrong with it, and where it stands."""
    place = f"{file.name},"
    for stretch in Stretches(read_lines(file.path, file.name, file.encoding), file.name):
        first = stretch[0].number
        bad = [(each.number, each.line) for each in stretch if isinstance(each.line, BadLine)]
        if bad:
            yield f"{place} line {bad[0][0]}", bad[0][1]
            continue
        lines = [each.line for each in stretch if isinstance(each.line, str)]
        try:
            trees = list(parse_trees(lines, file.name, first_line=first))
        except RegardError as error:
            yield place, BadLine("broken tree", str(error).removeprefix(f"{place} "))
            continue
        for tree in trees:
            yield f"{place} line {first}:", _sides(tree, tree_words)


def rebuild_tree(pairs: Pairs, i: int, tree_words: str) -> Tree:
    """The tree that pair i was read from. Which words are punctuation is in its tags, whatever the target says."""
    tags = pairs.tags_of_words(i)
    assert tags is not None or tree_words != "slot", "pairs whose targets have slots keep the tags of their words"
    return build_tree(pairs.target_text(i).split(), pairs.source_text(i).split(), tags, FORMS[tree_words])


def _sides(tree: Tree, tree_words: str) -> TextPair | BadLine:
    try:
        target = " ".join(linearise(tree, FORMS[tree_words]))
    except RegardError as error:
        return BadLine("no parts of speech", f"{error} Trees that have none are read with data.tree_words: bare.")
    return TextPair(" ".join(tree.words), target, " ".join(tree.tags) if tree_words == "slot" else "")


class Numbered(NamedTuple):
    """A line and its number in the file, and what is asked of it again and again."""

    number: int
    line: str | BadLine
    begins: str = ""
    """Its first character, or '((' where a bracket without a label begins it; nothing: it is blank."""
    indent: int = 0
    balance: int = 0
    """How many more brackets it opens than it closes."""

    @classmethod
    def of(cls, number: int, line: str | BadLine) -> Numbered:
        if isinstance(line, BadLine):
            return cls(number, line)
        text = line.lstrip()
        begins = "((" if _OUTER.match(text) else text[:1]
        return cls(number, line, begins, len(line) - len(text), line.count("(") - line.count(")"))

    @property
    def is_bad(self) -> bool:
        return isinstance(self.line, BadLine)

    @property
    def is_blank(self) -> bool:
        return not self.begins and not self.is_bad

    @property
    def label(self) -> str:
        """Of the bracket that it begins with; nothing where that has none."""
        found = _LABEL.match(self.line) if isinstance(self.line, str) else None
        return found[1] if found is not None else ""


class Stretches:
    """The stretches of a file, in order; no more than about MAX_LINE characters are held.

    What is read again after trees that are never closed is counted, and too much of it is an error.
    """

    def __init__(self, lines: Iterator[str | BadLine], name: str = "the text") -> None:
        self._rest, self._name = map(Numbered.of, count(1), lines), name
        self._again: deque[Numbered] = deque()  # what was taken for a part of a broken tree
        self._n_again = 0  # lines that were put there
        self._margin = 0  # white space before the first line of a stretch
        self._roots: set[str] = set()  # labels that trees began with
        self._is_flush = False  # whether whole trees had brackets at the margin inside them

    def __iter__(self) -> Iterator[list[Numbered]]:
        while (first := self._next()) is not None:
            if not first.is_blank:
                yield self._from(first)

    def _next(self) -> Numbered | None:
        return self._again.popleft() if self._again else next(self._rest, None)

    def _from(self, first: Numbered) -> list[Numbered]:
        found, depth, size = [first], first.balance, len(first.line) + 1
        if first.is_bad:
            return self._isolate_broken(found)
        self._margin = first.indent
        while depth <= MAX_DEPTH and (depth <= 0 or size <= MAX_LINE):
            after = self._next()
            if after is None:
                return found if depth <= 0 else self._isolate_broken(found)
            is_at_margin = after.indent <= self._margin
            # Where no tree is open, only a ')' too many has still to do with the last one.
            is_next = is_at_margin and (
                after.begins == "((" if depth > 0 else after.begins not in ("", ")") or after.is_bad
            )
            # Blank lines, indented trees and brackets too many have no end of their own.
            if is_next or (depth <= 0 and size > MAX_LINE):
                self._again.appendleft(after)
                if depth == 0:
                    self._learn(found)
                return found
            found.append(after)
            if after.is_bad:
                return self._isolate_broken(found)
            depth, size = depth + after.balance, size + len(after.line) + 1
        return self._isolate_broken(found, is_too_long=depth <= MAX_DEPTH)

    def _put_back(self, lines: Sequence[Numbered]) -> None:
        """Have lines read again; an error where that was asked for too often."""
        self._n_again += len(lines)
        last = lines[-1].number
        if self._n_again > FREE_LINES + MAX_AGAIN * last:
            raise RegardError(
                f"{self._name} has too many trees that are never closed: to find where they end, {self._n_again:,} "
                f"lines of its first {last:,} were read again. Add the closing brackets, or leave such trees out."
            )
        self._again.extendleft(reversed(lines))

    def _learn(self, whole: Sequence[Numbered]) -> None:
        """What trees look like in this file."""
        self._roots.add(whole[0].label)
        self._is_flush = self._is_flush or self._holds_brackets(whole)

    def _holds_brackets(self, found: Sequence[Numbered]) -> bool:
        return any(map(self._is_bracket, found[1:]))

    def _is_bracket(self, line: Numbered) -> bool:
        return line.begins[:1] == "(" and line.indent <= self._margin

    def _isolate_broken(self, found: list[Numbered], is_too_long: bool = False) -> list[Numbered]:
        """The first tree of `found` alone; the reading goes on where another may begin.

        Where a line cannot be read, one fault is likelier than two: brackets before it are no sign of a tree that is
        not closed, but of how trees are written here.
        """
        is_flush = self._is_flush
        if found[-1].is_bad and self._holds_brackets(found):
            self._roots.add(found[0].label)
            is_flush = True
        for i, (before, after) in enumerate(pairwise(found), 1):
            if self._may_begin(after, before, is_flush):
                self._put_back(found[i:])
                return found[:i]
        last = found[-1]
        while (line := self._next()) is not None:
            if line.is_bad or self._may_begin(line, last, is_flush):
                self._again.appendleft(line)
                break
            last = line
        if not is_too_long:
            return found
        why = f"begins a tree of more than {MAX_LINE:,} characters. Are there closing brackets missing?"
        return [Numbered(found[0].number, BadLine("too long", why))]

    def _may_begin(self, line: Numbered, before: Numbered, is_flush: bool) -> bool:
        """Whether a tree may begin in `line`, after a broken one.

        Where trees have brackets at the margin inside them, only a label that others began with, or an empty line
        before it, tells a tree from the rest of the broken one.
        """
        if not self._is_bracket(line):
            return False
        return not is_flush or before.is_blank or line.label in {"", *self._roots}
