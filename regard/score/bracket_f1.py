"""Labelled bracket F1 of parses, by the rules of evalb with COLLINS.prm (Black et al. 1991; Collins 1997).

A bracket is a phrase's label with the words [start, end) it covers. Over all sentences together,

    precision P = matched / predicted,   recall R = matched / gold,   F1 = 2 P R / (P + R)

where a bracket that a tree has twice can match twice. What counts:

- parts of speech are no brackets, and neither is a root called TOP, S1 or ROOT;
- punctuation (the tags , : `` '' . and traces; PUNCT in universal tags) is taken out first, and with it what covers
  nothing else;
- labels count up to their first - or =, and ADVP and PRT are one label.

Which words are punctuation is read off the gold tree: evalb reads it off both, and gives a sentence up where they
disagree.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from regard.data.trees import TRACE, Tree, strip_functions
from regard.errors import RegardError

ROOTS = frozenset({"TOP", "S1", "ROOT"})
PUNCTUATION = frozenset({",", ":", "``", "''", ".", "PUNCT", TRACE})
SAME = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]


@dataclass(frozen=True, kw_only=True)
class BracketScore:
    """Counts over all sentences; the shares are between 0 and 1, and 0 where there is nothing to divide by."""

    n_matched: int
    n_gold: int
    n_predicted: int
    n_exact: int
    """Sentences whose brackets are all right."""
    n_sentences: int

    @property
    def precision(self) -> float:
        return self.n_matched / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        return self.n_matched / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """2 P R / (P + R) is 2 matched / (gold + predicted)."""
        total = self.n_gold + self.n_predicted
        return 2 * self.n_matched / total if total else 0.0

    @property
    def exact(self) -> float:
        return self.n_exact / self.n_sentences

    def to_dict(self) -> dict[str, Any]:
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1, "exact": self.exact}
        return dataclasses.asdict(self) | shares

    def __str__(self) -> str:
        return (
            f"F1 {100 * self.f1:.2f} (precision {100 * self.precision:.2f}, recall {100 * self.recall:.2f}, "
            f"exact {100 * self.exact:.2f}% of {self.n_sentences:,} sentences)"
        )


def bracket_f1(predicted: Sequence[Tree], gold: Sequence[Tree], *, has_tags: bool = True) -> BracketScore:
    """Score parses against the trees of the same sentences, in the same order.

    Parses need a tag around every word, right or wrong, where the gold trees have one; `build_tree` puts it there. With
    has_tags false, no bracket is a part of speech and no word is punctuation, in either.

    >>> from regard.data.trees import parse_trees
    >>> gold, flat = parse_trees(["(S (NP (NN dogs)) (VP (VBP bark)) (. .))", "(S (NP (NN dogs)) (VBP bark) (. .))"])
    >>> print(bracket_f1([flat], [gold]))
    F1 80.00 (precision 100.00, recall 66.67, exact 0.00% of 1 sentences)
    """
    if len(predicted) != len(gold):
        raise RegardError(f"There are {len(predicted):,} parses for {len(gold):,} gold trees: give one for each.")
    if not gold:
        raise RegardError("There is nothing to score: no tree was given. Give at least one.")
    total: Counter[str] = Counter()
    for number, (guess, truth) in enumerate(zip(predicted, gold, strict=True), 1):
        _check_words(number, guess.words, truth.words)
        is_kept = [True] * len(truth.words)
        if has_tags:
            _check_tags(number, guess)
            is_kept = [tag not in PUNCTUATION for tag in truth.tags]
        found, wanted = (Counter(brackets(tree, is_kept, has_tags=has_tags)) for tree in (guess, truth))
        n_matched = (found & wanted).total()
        total["matched"] += n_matched
        total["gold"] += wanted.total()
        total["predicted"] += found.total()
        total["exact"] += n_matched == wanted.total() == found.total()
    return BracketScore(
        n_matched=total["matched"],
        n_gold=total["gold"],
        n_predicted=total["predicted"],
        n_exact=total["exact"],
        n_sentences=len(gold),
    )


def brackets(tree: Tree, is_kept: Sequence[bool], *, has_tags: bool = True) -> Iterable[Bracket]:
    """The brackets of a tree that count, over the words that are kept."""
    before = [0, *accumulate(is_kept)]  # kept words before each word, and before the end
    for inner, start, end in tree.brackets():
        label = strip_functions(inner.label)
        covers = before[start] < before[end]
        if covers and label not in ROOTS and not (has_tags and inner.is_tag):
            yield SAME.get(label, label), before[start], before[end]


def _check_tags(number: int, guess: Tree) -> None:
    try:
        _ = guess.tags
    except RegardError as error:
        raise RegardError(
            f"Sentence {number}: {error} Score with has_tags false, or put a tag around each word."
        ) from None


def _check_words(number: int, guess: tuple[str, ...], truth: tuple[str, ...]) -> None:
    if guess == truth:
        return
    if len(guess) != len(truth):
        what = f"the parse has {len(guess)} words and the gold tree {len(truth)}"
    else:
        at = next(i for i, (a, b) in enumerate(zip(guess, truth, strict=True)) if a != b)
        what = f"word {at + 1} is '{guess[at]}' in the parse and '{truth[at]}' in the gold tree"
    raise RegardError(
        f"Sentence {number}: {what}. Both must be trees of the same sentence, in the same order; traces are to be "
        "removed from both or neither."
    )
