"""A stepper small enough to try every text, and searches that are plain enough to believe."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.config import BeamConfig

Texts = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TableStepper:
    """Random log-probabilities for every text of every source; its state is what was read: (source, tokens ...)."""

    V: int
    seed: int
    decimals: int | None = None
    """Round to so many: ties."""
    p_impossible: float = 0.0
    grows: bool = False
    """Whether the vocabulary has one token more at every step."""

    def row(self, text: tuple[int, ...]) -> Tensor:
        # A text's own seed, so that it never matters which texts are beside it.
        key = self.seed
        for token in text:
            key = (key * 1_000_003 + token + 7) % (2**61 - 1)
        draws = torch.Generator().manual_seed(key)
        V = self.V + (len(text) - 1 if self.grows else 0)
        scores = torch.randn(V, dtype=torch.float64, generator=draws) * 2
        scores[torch.rand(V, generator=draws) < self.p_impossible] = -math.inf
        if self.decimals is not None:
            return (scores - 5).clamp(max=0).round(decimals=self.decimals)
        return scores.log_softmax(-1).nan_to_num(nan=-math.inf, neginf=-math.inf)

    def start(self, sources: list[int]) -> tuple[Tensor, Texts]:
        texts = tuple((source,) for source in sources)
        return torch.stack([self.row(text) for text in texts]), texts

    def step(self, tokens: Tensor, state: Texts) -> tuple[Tensor, Texts]:
        texts = tuple((*text, token) for text, token in zip(state, tokens.tolist(), strict=True))
        return torch.stack([self.row(text) for text in texts]), texts

    def reorder(self, state: Texts, rows: Tensor) -> Texts:
        return tuple(state[row] for row in rows.tolist())


Scored = tuple[tuple[int, ...], float, float]
"""A text, its log P, its score."""
MayCome = Callable[[tuple[int, ...], int], bool]


def plain_search(
    stepper: TableStepper, source: int, config: BeamConfig, max_length: int, stop: int | None, may_come: MayCome
) -> list[Scored]:
    """Beam search for one source over lists, to the very end; nothing impossible may happen."""
    done: list[Scored] = []
    open_texts: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(1, max_length + 1):
        candidates = []
        for number, (text, total) in enumerate(open_texts):
            for token, log_prob in enumerate(stepper.row((source, *text)).tolist()):
                if may_come(text, token) and log_prob > -math.inf:
                    candidates.append((-(total + log_prob), -log_prob, number, token, (*text, token)))
        open_texts = []
        for cost, _, _, token, text in sorted(candidates)[: config.beam]:
            if token == stop or length == max_length:
                done.append((text, -cost, -cost / config.penalty(length)))
            else:
                open_texts.append((text, -cost))
    return sorted(done, key=lambda scored: -scored[2])[: config.n_best]


def every_text(
    stepper: TableStepper, source: int, config: BeamConfig, max_length: int, stop: int | None, may_come: MayCome
) -> list[Scored]:
    """All complete texts there are, best first."""
    found: list[Scored] = []
    for length in range(1, max_length + 1):
        for text in itertools.product(range(stepper.V), repeat=length):
            if stop in text[:-1] or not (text[-1] == stop or length == max_length):
                continue
            if all(may_come(text[:i], text[i]) for i in range(length)):
                log_prob = sum(float(stepper.row((source, *text[:i]))[text[i]]) for i in range(length))
                if log_prob > -math.inf:
                    found.append((text, log_prob, log_prob / config.penalty(length)))
    return sorted(found, key=lambda scored: -scored[2])
