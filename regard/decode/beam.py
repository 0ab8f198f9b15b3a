"""Beam search: the most probable text, not a typical one, for many sources at a time.

A GPU that waits for us to look at each token stands still for half of the time. So the search goes ahead: the next step
is on its way while we look, and of a source that turns out to need none, it was for nothing. Where a guard or a
constraint reads the texts first, and on a CPU, nothing is done ahead. The texts are the same.
"""

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

from regard.decode.choice import Choice, Sent
from regard.decode.config import BeamConfig
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
    """Find all complete hypotheses of a beam search from one prompt, best first: score = log P(w_1 ... w_L) / L^α."""
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
    is_ahead: bool | None = None,
) -> list[list[Hypothesis]]:
    """Find for each of B sources the best complete hypotheses, best first: score = log P(w_1 ... w_L) / penalty(L).

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
    is_ahead = (log_probs.is_cuda and not rules.reads_texts) if is_ahead is None else is_ahead
    front = Front.start(rules, limits, [Finished(config) for _ in limits])
    totals = torch.zeros(len(limits), 1, dtype=torch.float64, device=log_probs.device)  # log P; -inf: not open
    n_left = torch.tensor(limits, device=log_probs.device)
    choice = Choice(config.beam, stop, int(limits.max(initial=0)))
    while len(front.sources):
        R = len(log_probs)
        log_probs = rules.apply(log_probs, front.texts.reshape(R, -1), front.states, front.is_open.ravel())
        moved = choice(totals, log_probs, n_left)  # (4, b, k)
        sent = Sent(moved)
        (rows, tokens), totals, n_left = moved[:2].long(), moved[3], n_left - 1
        goes_ahead = is_ahead and front.may_go_on
        if goes_ahead:
            if config.beam > 1:
                state = stepper.reorder(state, rows.flatten())
            log_probs, state = stepper.step(tokens.flatten(), state)
        seen = sent.read()  # the one time that we wait
        going = front.move(seen)
        if 0 < len(going) < len(rows):
            kept = torch.tensor(going, device=rows.device)
            totals, n_left, rows, tokens = (each[kept] for each in (totals, n_left, rows, tokens))
            if goes_ahead:
                left = (kept[:, None] * moved.shape[2] + torch.arange(moved.shape[2], device=kept.device)).flatten()
                log_probs, state = log_probs[left], stepper.reorder(state, left)
        if going and not goes_ahead:
            if not np.array_equal(seen[0, going].ravel(), np.arange(R)):  # a state is large, and copied to be reordered
                state = stepper.reorder(state, rows.flatten())
            log_probs, state = stepper.step(tokens.flatten(), state)
    return [each.best for each in front.finished]


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
    longest: NDArray[np.int64]  # (b,) their limits
    texts: NDArray[np.int64]  # (b, w, t)
    is_open: NDArray[np.bool_]  # (b, w)
    states: list[Any]  # the constraint's, b * w of them; without one, none is ever read
    finished: list["Finished"]  # of every source

    @classmethod
    def start(cls, rules: Rules, limits: NDArray[np.int64], finished: list["Finished"]) -> "Front":
        b = len(limits)
        texts, is_open = np.zeros((b, 1, 0), np.int64), np.ones((b, 1), np.bool_)
        return cls(rules, np.arange(b), limits, texts, is_open, [rules.start(row) for row in range(b)], finished)

    @property
    def length(self) -> int:
        return int(self.texts.shape[2])

    @property
    def may_go_on(self) -> bool:
        """Whether any source may have another token after the next."""
        return self.length + 1 < int(self.longest.max())

    def move(self, seen: NDArray[np.float64]) -> list[int]:
        """Take one more token in each hypothesis: `seen` is what `onward` made of them (4, b, k).

        Complete ones go into `finished`, and sources that need no more are gone from here. Returns which of the sources
        before the others were.
        """
        finished = self.finished
        rows, tokens = seen[0].astype(np.int64), seen[1].astype(np.int64)
        log_probs, is_open = seen[2], seen[3] > -math.inf
        check_numbers(log_probs[:, 0])  # NaN sorts before all numbers
        is_kept = log_probs > IMPOSSIBLE
        is_complete = is_kept & ~is_open
        is_complete[:, 0] |= ~is_open[:, 0]
        b, w, t = self.texts.shape
        texts = np.concatenate([self.texts.reshape(b * w, t)[rows], tokens[:, :, None]], axis=2)
        for at, slot in zip(*is_complete.nonzero(), strict=True):
            log_prob = float(log_probs[at, slot]) if is_kept[at, slot] else -math.inf
            finished[self.sources[at]].add(texts[at, slot].tolist(), log_prob)
        best_open = np.where(is_open & is_kept, log_probs, -math.inf).max(axis=1).tolist()
        going = [
            at
            for at in is_open.any(axis=1).nonzero()[0].tolist()
            if not finished[self.sources[at]].is_final(best_open[at], int(self.longest[at]))
        ]
        kept = slice(None) if len(going) == b else going  # a slice copies nothing
        rows, tokens, self.is_open = rows[kept], tokens[kept], is_open[kept]
        self.sources, self.longest, self.texts = self.sources[kept], self.longest[kept], texts[kept]
        if self.rules.constraint is not None:
            moves = zip(rows.ravel(), tokens.ravel().tolist(), self.is_open.ravel(), strict=True)
            self.states = [self.rules.step(self.states[row], token) if is_on else None for row, token, is_on in moves]
        return going
