"""How good tags are: the share that is right, and the F1 of the phrases that they mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from regard.score.significance import Counts

MEASURES = {"f1": "entity F1", "accuracy": "accuracy, %"}
CONLLEVAL = "phrases with the right kind and both ends, as conlleval counts them"


class Phrase(NamedTuple):
    """Words [first, end) that are one phrase of a kind."""

    kind: str
    first: int
    end: int


def find_phrases(tags: Sequence[str]) -> Iterator[Phrase]:
    """The phrases that B-, I- and O mark; an I- after O or after another kind begins one, as in conlleval.

    >>> [tuple(phrase) for phrase in find_phrases(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])]
    [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
    """
    kind, first = "", 0
    for i, tag in enumerate([*tags, "O"]):
        here = tag[2:] if tag[:2] in ("B-", "I-") else ""
        if kind and (here != kind or tag.startswith("B-")):
            yield Phrase(kind, first, i)
        if here and (here != kind or tag.startswith("B-")):
            first = i
        kind = here


def has_phrases(tags: Sequence[str]) -> bool:
    """Whether tags mark phrases.

    >>> has_phrases(["O", "B-PER"]), has_phrases(["NOUN", "O"])
    (True, False)
    """
    return any(tag[:2] == "B-" for tag in tags) and all(tag == "O" or tag[:2] in ("B-", "I-") for tag in tags)


def list_legal(tags: Sequence[str]) -> tuple[list[bool], list[list[bool]]]:
    """Which tags may come first, and for every tag which may follow it: an I- goes on with a phrase of its kind.

    Kinds that no B- begins, and tags that mark no phrases, are left free.

    >>> list_legal(["B-LOC", "I-LOC", "O"])
    ([True, False, True], [[True, True, True], [True, True, True], [True, False, True]])
    """
    begun = {tag[2:] for tag in tags if tag[:2] == "B-"} if has_phrases(tags) else set()
    is_inside = [tag[:2] == "I-" and tag[2:] in begun for tag in tags]
    after = [
        [not inside or before[2:] == tag[2:] for tag, inside in zip(tags, is_inside, strict=True)] for before in tags
    ]
    return [not inside for inside in is_inside], after


@dataclass
class Tags:
    """Tags of sentences, against the true ones. An answer is the tags of a sentence with spaces between them."""

    gold: Sequence[Sequence[str]]
    measure: str = "f1"
    is_higher_better: bool = True
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = MEASURES[self.measure].removesuffix(", %")
        self.signature = CONLLEVAL if self.measure == "f1" else "the share of words whose tag is right"

    def counts(self, answers: Sequence[Any]) -> Counts:
        """(n, 5): phrases that match, true ones, given ones; tags that are right, words."""
        rows = []
        for guess, truth in zip(answers, self.gold, strict=True):
            given = guess.split(" ") if isinstance(guess, str) else guess
            found, true = set(find_phrases(given)), set(find_phrases(truth))
            right = sum(a == b for a, b in zip(given, truth, strict=True))
            rows.append((len(found & true), len(true), len(found), right, len(truth)))
        return np.array(rows, dtype=np.int64).reshape(-1, 5)

    def score(self, summed: Counts, /) -> float:
        return score_tags(summed, self.measure)

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        if self.measure == "accuracy":
            return {}
        found = [score_tags(self.counts(answers).sum(axis=0), "accuracy") for answers in runs]
        return {MEASURES["accuracy"]: float(np.mean(found))}


def score_tags(summed: Counts, measure: str) -> float:
    """Per cent, of counts that were added up."""
    matched, gold, given, right, n = (int(value) for value in summed)
    if measure == "accuracy":
        return 100.0 * right / n if n else 0.0
    return 200.0 * matched / (gold + given) if gold + given else 0.0


def score_by_kind(gold: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of every kind of phrase, in per cent, and how many true ones there are."""
    counted: dict[str, Counter[str]] = {}
    for guess, truth in zip(answers, gold, strict=True):
        found, true = set(find_phrases(guess)), set(find_phrases(truth))
        for name, phrases in (("matched", found & true), ("true", true), ("given", found)):
            for phrase in phrases:
                counted.setdefault(phrase.kind, Counter())[name] += 1
    return {
        kind: {
            "precision": 100.0 * n["matched"] / n["given"] if n["given"] else 0.0,
            "recall": 100.0 * n["matched"] / n["true"] if n["true"] else 0.0,
            "f1": 200.0 * n["matched"] / (n["true"] + n["given"]),
            "n": n["true"],
        }
        for kind, n in sorted(counted.items())
    }
