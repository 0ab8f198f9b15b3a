"""How good outputs are, sentence by sentence, so that draws of sentences can be scored too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from regard.data.trees import Tree, parse_trees
from regard.score.bootstrap import Counts, score_by, statistics_of
from regard.score.bracket_f1 import bracket_f1
from regard.score.translation import ChrfScore, bleu_metric, chrf, streams

EVALB = "labelled brackets by the rules of evalb with COLLINS.prm"


class Judge(Protocol):
    """A score in per cent that is a function of sums over sentences."""

    name: str
    signature: str

    def score(self, summed: Counts, /) -> float:
        """Of sentences whose counts were added up, (k,)."""
        ...

    def counts(self, outputs: Sequence[str]) -> Counts:
        """What is counted in each sentence, (n, k)."""
        ...

    def chrf(self, outputs: Sequence[str]) -> ChrfScore | None:
        """A second opinion, where there is one."""
        ...


@dataclass
class BleuJudge:
    """sacreBLEU, against one reference or several; captions are judged without regard to case, as papers do."""

    references: Sequence[Sequence[str]]
    name: str = "BLEU"
    is_lowercase: bool = False

    def __post_init__(self) -> None:
        self._metric = bleu_metric(is_lowercase=self.is_lowercase)
        # The signature says how many references there are, which sacreBLEU knows once it has seen some.
        first = [given[0] for given in self.references]
        self._metric.corpus_score(first, streams(first, self.references))
        self.signature = str(self._metric.get_signature())

    def score(self, summed: Counts, /) -> float:
        return score_by(self._metric)(summed)

    def counts(self, outputs: Sequence[str]) -> Counts:
        return statistics_of(self._metric, outputs, self.references)

    def chrf(self, outputs: Sequence[str]) -> ChrfScore | None:
        return chrf(outputs, self.references, is_lowercase=self.is_lowercase)


@dataclass
class BracketJudge:
    """Labelled F1 of trees, written in brackets: 2 matched / (gold + predicted)."""

    gold: Sequence[str]
    has_tags: bool = True
    name: str = "F1"
    signature: str = EVALB

    def score(self, summed: Counts, /) -> float:
        matched, gold, predicted = (int(n) for n in summed)
        return 200.0 * matched / (gold + predicted) if gold + predicted else 0.0

    def counts(self, outputs: Sequence[str]) -> Counts:
        rows = []
        for guess, truth in zip(outputs, self.gold, strict=True):
            found = bracket_f1([_tree(guess)], [_tree(truth)], has_tags=self.has_tags)
            rows.append((found.n_matched, found.n_gold, found.n_predicted))
        return np.array(rows, dtype=np.int64)

    def chrf(self, outputs: Sequence[str]) -> ChrfScore | None:
        return None


def _tree(line: str) -> Tree:
    return next(iter(parse_trees([line])))


def judge_of(task: str, references: Sequence[Sequence[str]], has_tags: bool) -> Judge:
    """Who judges this kind of output against these references."""
    if task == "parsing":
        return BracketJudge([given[0] for given in references], has_tags)
    if task == "captions":
        return BleuJudge(references, "BLEU-4", is_lowercase=True)
    return BleuJudge(references)
