"""How good answers are, item by item, so that draws of items can be scored too: every score is a function of sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Protocol

import numpy as np

from regard.data.trees import Tree, parse_trees
from regard.score.bracket_f1 import bracket_f1
from regard.score.evaluate import finite_perplexity
from regard.score.significance import Counts, Estimate, share_interval
from regard.score.translation import References, bleu_metric, chrf, score_by, statistics_of, streams

SAME_CONTEXT = "same context"
"""The name of the score that language models have where all see the same past."""
SHARES = ("accuracy", "exact match")
"""Measures that are the share of what is right: of 100% or 0% their interval is that of a share."""
EVALB = "labelled brackets by the rules of evalb with COLLINS.prm"


class Judge(Protocol):
    """A measure of answers to test items."""

    name: str
    is_higher_better: bool
    signature: str
    other_signatures: Mapping[str, str]

    def counts(self, answers: Sequence[Any]) -> Counts:
        """What is counted in each item, (n, k)."""
        ...

    def score(self, summed: Counts, /) -> float:
        """Of items whose counts were added up, (k,)."""
        ...

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        """Second opinions by name, of the answers of one or several runs together."""
        ...


def score_interval(judge: Judge, estimate: Estimate) -> tuple[float, float] | None:
    """In which a score lies with 95%; None where all items have the same score, which says nothing of other items.

    A share of 0% or 100% has the exact interval of a share, over so many items as the estimate has.
    """
    if estimate.variance > 0:
        return estimate.interval
    if judge.name in SHARES and estimate.value in (0.0, 100.0):
        return share_interval(round(estimate.n_effective), is_all=estimate.value > 0)
    return None


@dataclass
class BitsPerByte:
    """Nats of blocks of a text over their bytes, over ln 2; an answer is {"nats", "tokens"} of a block."""

    block_bytes: Sequence[int]
    name: str = "bits per byte"
    is_higher_better: bool = False
    signature: str = "nats of all test tokens / (bytes of the test text × ln 2)"
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def counts(self, answers: Sequence[Any]) -> Counts:
        return np.array([(a["nats"], n) for a, n in zip(answers, self.block_bytes, strict=True)], dtype=np.float64)

    def score(self, summed: Counts, /) -> float:
        return float(summed[0] / summed[1] / math.log(2))

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        """Perplexity per token: the exponential of the mean nats per token; bits per byte with a context for all."""
        nats = [sum(a["nats"] for a in answers) / sum(a["tokens"] for a in answers) for answers in runs]
        found = {"perplexity": finite_perplexity(fmean(nats))}
        if all("nats_in_context" in answers[0] for answers in runs):
            total = fmean(sum(a["nats_in_context"] for a in answers) for answers in runs)
            found[SAME_CONTEXT] = total / sum(self.block_bytes) / math.log(2)
        return found


@dataclass
class Bleu:
    """sacreBLEU, against one reference or several; captions are judged without regard to case, as papers do."""

    references: Sequence[Sequence[str]]
    name: str = "BLEU"
    is_lowercase: bool = False
    is_higher_better: bool = True

    def __post_init__(self) -> None:
        self._metric = bleu_metric(is_lowercase=self.is_lowercase)
        # The signature says how many references there are, which sacreBLEU knows once it has seen some.
        first = [given[0] for given in self.references]
        self._metric.corpus_score(first, streams(first, self.references))
        self.signature = str(self._metric.get_signature())
        self.other_signatures: Mapping[str, str] = {
            "chrF": chrf(first, self.references, is_lowercase=self.is_lowercase).signature
        }

    def counts(self, answers: Sequence[Any]) -> Counts:
        return statistics_of(self._metric, answers, self.references)

    def score(self, summed: Counts, /) -> float:
        return score_by(self._metric)(summed)

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        references: References = self.references
        return {"chrF": fmean(chrf(a, references, is_lowercase=self.is_lowercase).score for a in runs)}


@dataclass
class BracketF1:
    """Labelled F1 of trees, written in brackets: 2 matched / (gold + predicted)."""

    gold: Sequence[str]
    has_tags: bool = True
    name: str = "F1"
    is_higher_better: bool = True
    signature: str = EVALB
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def counts(self, answers: Sequence[Any]) -> Counts:
        rows = []
        for guess, truth in zip(answers, self.gold, strict=True):
            found = bracket_f1([_tree(guess)], [_tree(truth)], has_tags=self.has_tags)
            rows.append((found.n_matched, found.n_gold, found.n_predicted))
        return np.array(rows, dtype=np.int64)

    def score(self, summed: Counts, /) -> float:
        matched, gold, predicted = (int(n) for n in summed)
        return 200.0 * matched / (gold + predicted) if gold + predicted else 0.0

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        return {}


def _tree(line: str) -> Tree:
    return next(iter(parse_trees([line])))
