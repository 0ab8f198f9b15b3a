"""Only sequences that are trees: what may come next while a parse is decoded.

A sequence is a tree over n words when its brackets balance, every bracket holds something, there is one outermost
bracket, and it holds all n words. Two bounds make every sequence end: a word or phrase has at most U brackets that
hold it and nothing else (a chain such as (S (VP (VB go)))), and there are at most b(n) brackets, so that

    length <= n + 2 b(n) + 1,        b(n) = ⌊brackets_per_word · n⌋ + extra_brackets        (+ 1: <eos>)

A choice is allowed if the sequence can still be finished after it. With r words left that means: closing all open
brackets from the inside out, a bracket that is still empty needs a word, and so does one whose chain would pass U; if
they need more than r words together, it cannot. What can be finished has an allowed next token: the word that is
needed, the closing bracket, or <eos>. So no search ever runs into a wall.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.data.tree_lines import DEFAULT, SLOT, LineForm, TreeLimits
from regard.errors import RegardError


class _Bracket(NamedTuple):
    """An open bracket: what closes it, how much it holds, and how long a chain its only child is (0: a word).

    `outside[k - 1]` words are needed by the brackets around it if it is closed as a chain of k: one entry for every k
    up to U, so that a choice is judged without a walk through all open brackets.
    """

    close: int
    n_children: int
    chain: int
    outside: tuple[int, ...]

    def with_child(self, chain: int) -> _Bracket:
        return _Bracket(self.close, self.n_children + 1, chain, self.outside)

    @property
    def closed_chain(self) -> int:
        """How many brackets hold the same and nothing else, once this one is closed as it is."""
        return 1 + self.chain if self.n_children == 1 else 1

    @property
    def needed(self) -> int:
        """Words without which this bracket and those around it cannot be closed."""
        if self.n_children and self.closed_chain <= len(self.outside):
            return self.outside[self.closed_chain - 1]
        return 1 + self.outside[0]  # a word, and the chain begins anew

    def inside(self, close: int) -> _Bracket:
        """A bracket that is opened in this one."""
        return _Bracket(close, 0, 0, tuple(self.with_child(k + 1).needed for k in range(len(self.outside))))


class TreeState(NamedTuple):
    """A sequence that is not finished; `is_done` once the outermost bracket is closed."""

    open: tuple[_Bracket, ...]
    words_left: int
    brackets_left: int
    is_done: bool


class TreeConstraint:
    """A `Constraint`: the tokens that keep a sequence a tree over the words of its source.

    `tokens[i]` is the text of token i, `n_words[row]` the number of words of a batch's source `row`. Where the slots
    are tags, every token that is no bracket and is not in <> is one.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        n_words: Sequence[int],
        *,
        stop: int,
        form: LineForm = DEFAULT,
        limits: TreeLimits | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.n_words, self.stop, self.limits = list(n_words), stop, limits or TreeLimits()
        for row, n in enumerate(self.n_words):
            if n < 1:
                raise RegardError(f"Source {row} has {n} words: a tree needs one at least. Leave empty lines out.")
        self.n_tokens, self.device = len(tokens), device
        self.closes = _find_closes(tokens)
        self.slots = _find_slots(tokens, form)
        self._masks: dict[tuple[bool, bool, int | None, bool], Bool[Tensor, " V"]] = {}

    def start(self, row: int) -> TreeState:
        n = self.n_words[row]
        return TreeState((), n, self.limits.max_brackets(n), is_done=False)

    def allowed(self, state: TreeState) -> Bool[Tensor, " V"]:
        """One tensor for all states that allow the same; it is not to be changed."""
        close = state.open[-1].close if state.open and self._may_close(state) else None
        key = (self._may_open(state), self._may_take_word(state), close, state.is_done)
        if key not in self._masks:
            self._masks[key] = self._make_mask(*key)
        return self._masks[key]

    def step(self, state: TreeState, token: int) -> TreeState:
        open_, words_left, brackets_left, _ = state
        if token in self.closes:
            new = self._open(state, self.closes[token])
            return TreeState((*open_, new), words_left, brackets_left - 1, is_done=False)
        *outer, top = open_
        if token in self.slots:
            return TreeState((*outer, top.with_child(chain=0)), words_left - 1, brackets_left, is_done=False)
        assert token == top.close, "a token that was not allowed"
        if outer:
            outer[-1] = outer[-1].with_child(top.closed_chain)
        return TreeState(tuple(outer), words_left, brackets_left, is_done=not outer)

    def _open(self, state: TreeState, close: int) -> _Bracket:
        if state.open:
            return state.open[-1].inside(close)
        return _Bracket(close, 0, 0, (0,) * self.limits.max_chain)

    def _may_open(self, state: TreeState) -> bool:
        if state.is_done or not state.brackets_left or len(state.open) == self.limits.max_depth:
            return False
        needed_around = state.open[-1].with_child(chain=1).needed if state.open else 0
        return 1 + needed_around <= state.words_left

    def _may_take_word(self, state: TreeState) -> bool:
        return bool(state.open) and state.open[-1].with_child(chain=0).needed < state.words_left

    def _may_close(self, state: TreeState) -> bool:
        """What the brackets around it need is unchanged, so that they can be closed as before."""
        if not state.open[-1].n_children or state.open[-1].closed_chain > self.limits.max_chain:
            return False
        return len(state.open) > 1 or not state.words_left

    def _make_mask(self, may_open: bool, may_take_word: bool, close: int | None, is_done: bool) -> Bool[Tensor, " V"]:
        ids = [*(self.closes if may_open else ()), *(self.slots if may_take_word else ())]
        ids += [] if close is None else [close]
        ids += [self.stop] if is_done else []
        mask = torch.zeros(self.n_tokens, dtype=torch.bool)
        mask[ids] = True
        return mask.to(self.device)


def _find_closes(tokens: Sequence[str]) -> dict[int, int]:
    """Every opening bracket with the one that closes it."""
    ids = {token: i for i, token in enumerate(tokens)}
    opens = {token: i for token, i in ids.items() if token.startswith("(") and len(token) > 1}
    if not opens:
        raise RegardError("The vocabulary has no opening bracket such as '(S': was it learned on trees?")
    closes = {}
    for token, i in opens.items():
        close = f"){token[1:]}"
        if close not in ids:
            raise RegardError(f"The vocabulary has '{token}' but no '{close}' to close it. Learn it on whole trees.")
        closes[i] = ids[close]
    return closes


def _find_slots(tokens: Sequence[str], form: LineForm) -> frozenset[int]:
    if form.words == "slot":
        slots = {i for i, token in enumerate(tokens) if token == SLOT}
    else:
        marks = {i for i, token in enumerate(tokens) if len(token) > 2 and token[0] == "<" and token[-1] == ">"}
        slots = {i for i, token in enumerate(tokens) if token and token[0] not in "()"} - marks
    if not slots:
        named = f"no '{SLOT}'" if form.words == "slot" else "no tags"
        raise RegardError(f"The vocabulary has {named} to stand for a word: was it learned on trees of this form?")
    return frozenset(slots)
