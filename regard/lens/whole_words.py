"""What comes next by whole words: a word's probability is the product of those of its pieces, and of its end.

    P(word) = Σ over the ways to spell it of  Π_i P(piece_i | text, pieces before) · P(a new word begins | text, word)

A piece begins a new word where it starts with white space or a mark such as a comma, or is the end of the text. The
most probable beginnings are spelled out, `beam` at a time, so rare words may be missed; none is given too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer

BEAM = 32
MAX_PIECES = 16
CONTINUES = "##"  # how WordPiece begins a piece that continues a word
_WORD_MARKS = "'’-_\\"  # with letters and digits, what words are made of; a backslash begins a byte such as \xc3


class Stepper(Protocol):
    """What goes on from a text token by token."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]: ...

    def reorder(self, state: Any, rows: Tensor) -> Any: ...


@dataclass(frozen=True)
class Opened:
    """A text that was read, and may be gone on from once: log-probabilities (1, V) of what comes next."""

    stepper: Stepper
    log_probs: Tensor
    state: Any
    vocabulary: Tokenizer | ExtendedVocabulary
    text: str
    """What was read, which tells whether its last word is whole."""


class _Begun(NamedTuple):
    """Pieces of a word that may not be whole; `row` is the state's text that they go on from."""

    pieces: tuple[int, ...]
    log_prob: float
    row: int
    is_blank: bool


def rank_tokens(log_probs: Tensor, vocabulary: Tokenizer | ExtendedVocabulary, n: int) -> list[tuple[str, float]]:
    """The n most probable tokens and their probabilities."""
    values, tokens = log_probs[0].double().topk(min(n, log_probs.shape[1]))
    return [(vocabulary.token_text(t), p) for t, p in zip(tokens.tolist(), values.exp().tolist(), strict=True)]


def complete_words(opened: Opened, n: int, beam: int = BEAM, max_pieces: int = MAX_PIECES) -> list[tuple[str, float]]:
    """The n most probable whole words after a text; its state is used up.

    One that goes on the text's last word begins with an ellipsis.
    """
    kinds = _Kinds(opened.vocabulary)
    found: dict[str, float] = {}
    log_probs, state = opened.log_probs.double().cpu().numpy(), opened.state
    begun = [_Begun((), 0.0, 0, True)]
    for depth in range(max_pieces):
        grown: list[_Begun] = []
        for row, before in enumerate(begun):
            probs = np.exp(before.log_prob + log_probs[row])
            if not before.is_blank:
                word = _spell(opened, before.pieces)
                found[word] = found.get(word, 0.0) + float(probs[kinds.begins_word].sum())
                probs = np.where(kinds.begins_word, 0.0, probs)
            for token in np.argsort(-probs, kind="stable")[:beam].tolist():
                pieces = (*before.pieces, token)
                if kinds.is_whole[token] and (before.is_blank or depth == 0):
                    word = _spell(opened, pieces)
                    found[word] = found.get(word, 0.0) + float(probs[token])
                elif probs[token] > 0 and not (before.is_blank and depth and kinds.is_blank[token]):
                    is_blank = before.is_blank and bool(kinds.is_blank[token])
                    grown.append(_Begun(pieces, float(np.log(probs[token])), row, is_blank))
        begun = sorted(grown, key=lambda b: -b.log_prob)[:beam]
        least = sorted(found.values(), reverse=True)[n - 1] if len(found) >= n else 0.0
        begun = [b for b in begun if np.exp(b.log_prob) > least]
        if not begun:
            break
        state = opened.stepper.reorder(state, torch.tensor([b.row for b in begun]))
        after, state = opened.stepper.step(torch.tensor([b.pieces[-1] for b in begun]), state)
        log_probs = after.double().cpu().numpy()
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [(word, p) for word, p in ranked[:n] if p > 0]


class _Kinds:
    """What each token of a vocabulary does to a word, (V,) of bool."""

    def __init__(self, vocabulary: Tokenizer | ExtendedVocabulary) -> None:
        texts = [vocabulary.token_text(i) for i in range(vocabulary.vocab_size)]
        is_wordpiece = any(text.startswith(CONTINUES) and len(text) > 2 for text in texts)
        ends = {vocabulary.eos, *(() if vocabulary.marks is None else vocabulary.marks.ids)}
        self.is_blank: NDArray[np.bool_] = np.array([not text.strip() and "\n" not in text for text in texts])
        is_end = np.array([i in ends for i in range(len(texts))])
        is_mark = np.array([not _is_of_word(text.strip()[:1]) if text.strip() else "\n" in text for text in texts])
        if is_wordpiece:
            self.begins_word = np.array([not text.startswith(CONTINUES) for text in texts]) | is_end
            is_mark = np.array([not _is_of_word(text.removeprefix(CONTINUES)[:1]) for text in texts])
        else:
            self.begins_word = is_end | is_mark | np.array([text[:1].isspace() for text in texts])
        self.is_whole: NDArray[np.bool_] = is_end | is_mark
        """A word by itself: the end, punctuation, a line end."""


def _is_of_word(character: str) -> bool:
    return character.isalnum() or (character in _WORD_MARKS and bool(character))


def _spell(opened: Opened, pieces: tuple[int, ...]) -> str:
    """The word that pieces spell; with an ellipsis where they go on the last word of the text."""
    vocabulary = opened.vocabulary
    first = vocabulary.token_text(pieces[0])
    if pieces[0] == vocabulary.eos:
        return first
    word = vocabulary.decode(pieces) if len(pieces) > 1 else first
    is_inside = opened.text[-1:].isalnum() and _is_of_word(first.removeprefix(CONTINUES)[:1])
    if first.startswith(CONTINUES):
        word = word.removeprefix(CONTINUES)
    elif vocabulary_has_wordpiece(vocabulary):
        is_inside = False
    return ("…" if is_inside else "") + (word.strip(" ") or word)


def vocabulary_has_wordpiece(vocabulary: Tokenizer | ExtendedVocabulary) -> bool:
    """Whether words are cut into pieces of which the later ones begin with ##."""
    return isinstance(vocabulary, Tokenizer) and vocabulary.kind == "wordpiece"
