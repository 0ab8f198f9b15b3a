"""A tree as a sequence of tokens, and back: parsing as translation (Vinyals et al. 2015); trees as bracketed text.

    (S (NP (DT the) (NN dog)) (VP (VBZ barks)))     is predicted as     (S (NP XX XX )NP (VP XX )VP )S

The words are not predicted: they are known, and each takes the next slot. Of the forms there are,

- closing brackets with labels are taken. They make nothing longer, tell the decoder what it closes without counting
  brackets, and let a wrong sequence be seen as wrong;
- one slot for every word is the default, so that a parser spends its probability on brackets. With the tag as the slot
  it tags as well, for the same number of tokens; Vinyals et al. gave tags up for slots to gain in F1.

`LineForm` chooses. Trees whose words have no part of speech, (S (NP dogs) (VP bark)), are read with has_tags false.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.data.trees import MAX_DEPTH, Tree
from regard.errors import RegardError
from regard.settings import Settings, setting

SLOT = "XX"
WIDTH = 100  # of an indented tree: what fits is kept on one line


@dataclass(frozen=True, kw_only=True)
class LineForm(Settings):
    """How a tree becomes a sequence."""

    words: str = setting("slot", "what stands for a word: one slot, or its part of speech", choices=["slot", "tag"])
    has_tags: bool = setting(True, "a bracket around one word is its part of speech, not a phrase")

    def check(self) -> None:
        if self.words == "tag" and not self.has_tags:
            raise RegardError("LineForm.words is 'tag', but has_tags is false: trees without tags need words: slot.")


DEFAULT = LineForm()


@dataclass(frozen=True, kw_only=True)
class TreeLimits(Settings):
    """How large a tree may be. All 3,914 trees of the Penn Treebank's sample are within the defaults."""

    max_chain: int = setting(4, "brackets that may hold one another and nothing else", low=1)
    brackets_per_word: float = setting(1.5, "brackets that a sentence may have for each of its words", low=0.0)
    extra_brackets: int = setting(4, "brackets beyond those, for short sentences", low=1)
    max_depth: int = setting(100, "brackets that may be open at once", low=1, high=MAX_DEPTH)
    max_tokens: int | None = setting(None, "the longest sequence that can be written, <eos> included; null: any", low=4)

    @property
    def max_words(self) -> int | None:
        """With more words there is no room for one bracket around them."""
        return None if self.max_tokens is None else self.max_tokens - 3

    def max_brackets(self, n_words: int) -> int:
        wanted = math.floor(self.brackets_per_word * n_words) + self.extra_brackets
        return wanted if self.max_tokens is None else min(wanted, (self.max_tokens - n_words - 1) // 2)

    def max_length(self, n_words: int) -> int:
        """No sequence for n words is longer, `<eos>` included.

        >>> TreeLimits().max_length(10)  # 10 words, 19 brackets twice, <eos>
        49
        """
        return n_words + 2 * self.max_brackets(n_words) + 1


def linearise(tree: Tree, form: LineForm = DEFAULT) -> list[str]:
    """The tokens of a tree.

    >>> tree = Tree("S", (Tree("NP", (Tree("NN", ("dogs",)),)), Tree("VP", (Tree("VBP", ("bark",)),))))
    >>> " ".join(linearise(tree))
    '(S (NP XX )NP (VP XX )VP )S'
    >>> " ".join(linearise(tree, LineForm(words="tag")))
    '(S (NP NN )NP (VP VBP )VP )S'
    """
    if form.has_tags:
        _check_tags(tree)
    return list(_tokens(tree, form))


def build_tree(
    tokens: Sequence[str], words: Sequence[str], tags: Sequence[str] | None = None, form: LineForm = DEFAULT
) -> Tree:
    """The tree that `tokens` say, over `words`.

    A word's part of speech is the one given, or else what stands in its slot (XX, where slots say nothing); with
    has_tags false it has none. Both kinds of closing bracket are read: one with a label must close that label.

    >>> build_tree("(S (NP XX )NP XX )S".split(), ["dogs", "bark"], ["NN", "VBP"]).children[1]
    Tree(label='VBP', children=('bark',))
    """
    if tags is not None and len(tags) != len(words):
        raise RegardError(f"There are {len(words)} words and {len(tags)} tags: give one tag a word, or none at all.")
    n_slots = sum(token[:1] not in ("(", ")") for token in tokens)
    if n_slots != len(words):
        raise RegardError(f"The sequence has {n_slots} places for words, but the sentence has {len(words)} words.")
    leaves = iter(_leaves(tokens, words, tags, form))
    done: Tree | None = None
    open_: list[tuple[str, list[Tree | str]]] = []
    for number, token in enumerate(tokens, 1):
        if done is not None:
            raise RegardError(f"Token {number}, '{token}', comes after the end of the tree: a sequence is one tree.")
        if token.startswith("("):
            if len(open_) == MAX_DEPTH:
                raise RegardError(f"Token {number}, '{token}': more than {MAX_DEPTH} brackets are open.")
            open_.append((token[1:], []))
        elif not open_:
            raise RegardError(f"Token {number}, '{token}', comes before the first bracket: a sequence is one tree.")
        elif token.startswith(")"):
            tree = _close(open_.pop(), token, number)
            if open_:
                open_[-1][1].append(tree)
            else:
                done = tree
        else:
            open_[-1][1].append(next(leaves))
    if done is None:
        raise RegardError(f"The sequence ends with {len(open_)} open bracket(s): it is not a tree.")
    return done


def to_brackets(tree: Tree) -> str:
    """A tree on one line, as other tools read it; brackets in words are written -LRB- and -RRB-.

    >>> to_brackets(Tree("NP", (Tree("NN", ("f(x)",)),)))
    '(NP (NN f-LRB-x-RRB-))'
    """
    return f"({tree.label} {' '.join(escape_word(c) if isinstance(c, str) else to_brackets(c) for c in tree.children)})"


def indent_tree(tree: Tree, indent: int = 0) -> str:
    """A tree over several lines; what fits on one is left on it.

    >>> print(indent_tree(Tree("S", (Tree("NP", (Tree("NN", ("dogs",)),)), Tree("VP", (Tree("VBP", ("b" * 90,)),))))))
    (S
      (NP (NN dogs))
      (VP
        (VBP bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)))
    """
    line = to_brackets(tree)
    if tree.is_tag or indent + len(line) <= WIDTH:
        return line
    margin = "\n" + " " * (indent + 2)
    inside = (escape_word(c) if isinstance(c, str) else indent_tree(c, indent + 2) for c in tree.children)
    return f"({tree.label}{margin}{margin.join(inside)})"


def _check_tags(tree: Tree) -> None:
    tree.tags  # noqa: B018  says which word has none
    if tree.is_tag:
        raise RegardError(
            f"The tree ({tree.label} {tree.children[0]}) is a part of speech alone, with no phrase above it. Put one "
            "around it, or read with has_tags: false if these trees have no parts of speech."
        )


def _tokens(tree: Tree, form: LineForm) -> Iterator[str]:
    if form.has_tags and tree.is_tag:
        yield tree.label if form.words == "tag" else SLOT
        return
    yield f"({tree.label}"
    for child in tree.children:
        if isinstance(child, str):
            yield SLOT
        else:
            yield from _tokens(child, form)
    yield f"){tree.label}"


def _leaves(
    tokens: Sequence[str], words: Sequence[str], tags: Sequence[str] | None, form: LineForm
) -> list[Tree | str]:
    if tags is None and not form.has_tags:
        return list(words)
    if tags is None:
        tags = [token for token in tokens if token[:1] not in ("(", ")")]
    return [Tree(tag, (word,)) for tag, word in zip(tags, words, strict=True)]


def _close(bracket: tuple[str, list[Tree | str]], token: str, number: int) -> Tree:
    label, children = bracket
    if token != f"){label}":
        raise RegardError(f"Token {number}, '{token}', closes the bracket '({label}': it should be '){label}'.")
    if not children:
        raise RegardError(f"Token {number}, '{token}', closes a bracket that holds nothing.")
    return Tree(label, tuple(children))


def escape_word(word: str) -> str:
    """A word as files of trees spell it, where a bracket would be read as one.

    >>> escape_word("(")
    '-LRB-'
    """
    return word.replace("(", "-LRB-").replace(")", "-RRB-")
