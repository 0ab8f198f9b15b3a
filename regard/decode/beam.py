"""Beam search: the most probable text, not a typical one, for many sources at a time."""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.config import BeamConfig
from regard.decode.highest import highest
from regard.decode.rules import IMPOSSIBLE, Rules
from regard.decode.stepper import Constraint, Stepper
from regard.models.next_token import NextToken, check_numbers


@dataclass(frozen=True)
class Hypothesis:
    tokens: tuple[int, ...]
    log_prob: float
    score: float
    """log P over the length penalty."""


def search(
    model: NextToken, prompt: Sequence[int], beam: int, max_tokens: int, *, stop: int | None = None, alpha: float = 1.0
) -> list[Hypothesis]:
    """All complete hypotheses of a beam search from one prompt, best first: score = log P(w_1 ... w_L) / L^α."""
    log_probs, state = model.start(torch.tensor([list(prompt)], dtype=torch.long), len(prompt) + max_tokens)
    config = BeamConfig(beam=beam, n_best=None, alpha=alpha)
    return beam_search(model, log_probs, state, config, max_lengths=max_tokens, stop=stop)[0]


def beam_search(
    stepper: Stepper,
    log_probs: Float[Tensor, "B V"],
    state: Any,
    config: BeamConfig,
    *,
    max_lengths: Sequence[int] | int,
    stop: int | None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """For each of B sources the best complete hypotheses, best first: score = log P(w_1 ... w_L) / penalty(L).

    `log_probs` are those of the first tokens, and `state`, which is used up, is what the stepper goes on from. The
    penalty is 1, L^α, where α = 1 makes the score the mean log-probability of a token, or ((5 + L) / 6)^α (Wu et al.
    2016, without their term for coverage).

    At every length the `beam` most probable continuations of a source are kept. One that ends in `stop` is complete
    and leaves; those that are open at the source's longest length M count as complete. So a beam of 1 is greedy, and
    one that never prunes is exhaustive.

    A source ends early where that changes nothing. Log-probabilities are at most 0 and the penalty never falls, so
    whatever an open hypothesis with log-probability p becomes, its score is at most p / penalty(M): once n_best
    complete ones are as good as that for every open one, no other can take their places.
    """
    limits = np.broadcast_to(np.asarray(max_lengths, dtype=np.int64), len(log_probs))
    assert (limits >= 1).all(), "a text has one token at least"
    rules = Rules(
        stop=stop, min_length=config.min_length, no_repeat_ngram=config.no_repeat_ngram, constraint=constraint
    )
    finished = [Finished(config) for _ in limits]
    front = Front.start(rules, len(limits))
    totals = torch.zeros(len(limits), 1, dtype=torch.float64, device=log_probs.device)  # log P; -inf: not open
    while len(front.sources):
        R = len(log_probs)
        log_probs = rules.applied(log_probs, front.texts.reshape(R, -1), front.states, front.is_open.ravel())
        seen = continuations(totals, log_probs, config.beam).cpu().numpy()  # the one time that we wait
        moved = front.move(seen, limits, finished)  # (3, b, k)
        if not len(front.sources):
            break
        told = torch.from_numpy(moved).to(log_probs.device, non_blocking=True)
        (rows, tokens), totals = told[:2].long().flatten(1), told[2]
        if not np.array_equal(moved[0].ravel(), np.arange(R)):  # a state is large, and copied to be reordered
            state = stepper.reorder(state, rows)
        log_probs, state = stepper.step(tokens, state)
    return [f.best for f in finished]


def continuations(totals: Float[Tensor, "b w"], log_probs: Float[Tensor, "R V"], beam: int) -> Float[Tensor, "3 b k"]:
    """The most probable continuations of w hypotheses of each source, best first: hypothesis, token and log P of each.

    Ties go to the more probable token, then to the earlier hypothesis, then to the lower id: so that a beam of 1
    decides every tie, and what rounding makes one, as greedy decoding does. Only the `beam` most probable tokens of a
    hypothesis can be among its source's; so the candidates are few. What cannot be has IMPOSSIBLE as its log P.
    """
    b, w = totals.shape
    values, ids = highest(log_probs, min(beam, log_probs.shape[1]))  # (b w, n)
    n = values.shape[1]
    candidates = (totals.view(-1, 1) + values.double()).clamp(min=IMPOSSIBLE)
    candidates = candidates.masked_fill(totals.view(-1, 1) == -math.inf, -math.inf).view(b, w * n)
    order = values.view(b, w * n).argsort(dim=-1, descending=True, stable=True)
    by_total = candidates.gather(1, order).argsort(dim=-1, descending=True, stable=True)
    order = order.gather(1, by_total)[:, :beam]
    tokens = ids.view(b, w * n).gather(1, order)
    return torch.stack([(order // n).double(), tokens.double(), candidates.gather(1, order)])


class Finished:
    """The best complete hypotheses of one source; of equals, the one that came first is the better."""

    def __init__(self, config: BeamConfig) -> None:
        self.config = config
        self.best: list[Hypothesis] = []

    def add(self, tokens: Sequence[int], log_prob: float) -> None:
        score = log_prob / self.config.penalty(len(tokens))
        insort(self.best, Hypothesis(tuple(tokens), log_prob, score), key=lambda hypothesis: -hypothesis.score)
        if self.config.n_best is not None:
            del self.best[self.config.n_best :]

    def is_final(self, best_open: float, max_length: int) -> bool:
        """Whether no hypothesis that goes on from log P = best_open can still be among the best."""
        is_full = len(self.best) == self.config.n_best
        return is_full and self.best[-1].score >= best_open / self.config.penalty(max_length)


@dataclass
class Front:
    """The hypotheses of the sources that still go on, as the host sees them: b sources, w hypotheses each."""

    rules: Rules
    sources: NDArray[np.int64]  # (b,) their numbers
    texts: NDArray[np.int64]  # (b, w, t)
    is_open: NDArray[np.bool_]  # (b, w)
    states: list[Any]  # the constraint's, b * w of them; without one, none is ever read

    @classmethod
    def start(cls, rules: Rules, n_sources: int) -> "Front":
        texts = np.zeros((n_sources, 1, 0), dtype=np.int64)
        states = [rules.start(row) for row in range(n_sources)]
        return cls(rules, np.arange(n_sources), texts, np.ones((n_sources, 1), dtype=np.bool_), states)

    def move(
        self, seen: NDArray[np.float64], limits: NDArray[np.int64], finished: list[Finished]
    ) -> NDArray[np.float64]:
        """Take one more token in each hypothesis: `seen` is what `continuations` found (3, b, k).

        Complete ones go into `finished`, and sources that need no more are gone from here. Of the others comes back
        the row of the batch before that each hypothesis continues, its token, and its log P, -inf if not open.
        """
        slots, tokens, totals = seen[0].astype(np.int64), seen[1].astype(np.int64), seen[2]
        check_numbers(totals[:, 0])  # NaN sorts before all numbers
        is_kept = totals > IMPOSSIBLE
        totals = np.where(is_kept, totals, -math.inf)
        is_kept[:, 0] = True  # one at least, impossible or not
        b, width, t = self.texts.shape
        rows = np.arange(b)[:, None] * width + slots
        texts = np.concatenate([self.texts.reshape(b * width, t)[rows], tokens[:, :, None]], axis=2)
        longest = limits[self.sources]
        is_complete = is_kept & ((tokens == self.rules.stop) | (t + 1 == longest)[:, None])
        for at, slot in zip(*is_complete.nonzero(), strict=True):
            finished[self.sources[at]].add(texts[at, slot].tolist(), float(totals[at, slot]))
        is_open = is_kept & ~is_complete
        best_open = np.where(is_open, totals, -math.inf).max(axis=1)
        going = [
            at
            for at in is_open.any(axis=1).nonzero()[0]
            if not finished[self.sources[at]].is_final(float(best_open[at]), int(longest[at]))
        ]
        kept = slice(None) if len(going) == b else going  # a slice copies nothing
        rows, tokens, is_open = rows[kept], tokens[kept], is_open[kept]
        self.sources, self.texts, self.is_open = self.sources[kept], texts[kept], is_open
        if self.rules.constraint is not None:
            moves = zip(rows.ravel(), tokens.ravel().tolist(), is_open.ravel(), strict=True)
            self.states = [self.rules.step(self.states[row], token) if is_on else None for row, token, is_on in moves]
        # What is impossible and yet kept goes on: only what is not open is -inf.
        totals = np.where(is_open, totals[kept].clip(min=IMPOSSIBLE), -math.inf)
        return np.stack([rows.astype(np.float64), tokens.astype(np.float64), totals])


def rescored(hypotheses: Sequence[Hypothesis], log_probs: Sequence[float], config: BeamConfig) -> list[Hypothesis]:
    """The same texts under other log-probabilities, say those of a larger model, best first."""
    finished = Finished(config.replace(n_best=None))
    for hypothesis, log_prob in zip(hypotheses, log_probs, strict=True):
        finished.add(hypothesis.tokens, log_prob)
    return finished.best
