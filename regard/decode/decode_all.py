"""Greedy and sampled texts for many sources at a time, each with a longest length of its own."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.decode.config import SamplingConfig
from regard.decode.generate import Draws, next_tokens
from regard.decode.highest import highest
from regard.decode.rules import IMPOSSIBLE, Rules
from regard.decode.stepper import Constraint, Stepper
from regard.models.next_token import check_numbers

WASTE = 0.25
"""The share of rows that may have ended before they are dropped: dropping copies the whole state."""


class Decoded(NamedTuple):
    """A text and its log P, which is the model's own: neither the temperature nor a filter changes it."""

    tokens: list[int]
    log_prob: float


def decode_all(
    stepper: Stepper,
    log_probs: Float[Tensor, "B V"],
    state: Any,
    config: SamplingConfig,
    *,
    max_lengths: Sequence[int] | int,
    stop: int | None,
    min_length: int = 1,
    no_repeat_ngram: int | None = None,
    constraint: Constraint | None = None,
    numbers: Sequence[Sequence[int]] | None = None,
) -> list[Decoded]:
    """One text for each of B sources; `stop` ends it and is its last token.

    `log_probs` are those of the first tokens, and `state`, which is used up, is what the stepper goes on from;
    `max_lengths`, which count the end mark, stand for the config's max_tokens.
    Temperature 0 is greedy: what a beam of 1 finds. What a row draws depends on the seed and its `numbers` alone, which
    are else that of the row.
    """
    assert config.beam is None, "a search is beam_search's"
    limits = np.broadcast_to(np.asarray(max_lengths, dtype=np.int64), len(log_probs))
    assert (limits >= 1).all(), "a text has one token at least"
    rules = Rules(stop=stop, min_length=min_length, no_repeat_ngram=no_repeat_ngram, constraint=constraint)
    numbers = [(row,) for row in range(len(limits))] if numbers is None else numbers
    draws = [np.random.default_rng([config.seed, *number]) for number in numbers]
    assert len(draws) == len(limits), "every row has its numbers"
    states = [rules.start(row) for row in range(len(limits))]
    texts = np.zeros((len(limits), 0), dtype=np.int64)
    totals = np.zeros(len(limits))  # log P
    done: dict[int, Decoded] = {}
    rows = list(range(len(limits)))  # whose texts these are
    while rows:
        is_going = np.array([row not in done for row in rows])
        log_probs = rules.applied(log_probs, texts, states, is_going)
        best, tokens = chosen(log_probs, config, [draws[row] for row in rows])
        costs = log_probs.gather(1, tokens[:, None].clamp(max=log_probs.shape[1] - 1))[:, 0]  # drawn from NaN it is V
        told = torch.stack([best.double(), tokens.double(), costs.double()]).cpu()  # the one time that we wait
        check_numbers(told[0].tolist())
        read, cost = told[1].long().numpy(), told[2].numpy()
        texts = np.concatenate([texts, read[:, None]], axis=1)
        totals += np.where(cost > IMPOSSIBLE, cost, -math.inf)
        for at in is_going.nonzero()[0]:
            if read[at] == stop or texts.shape[1] == limits[rows[at]]:
                done[rows[at]] = Decoded(texts[at].tolist(), float(totals[at]))
            else:
                states[at] = rules.step(states[at], int(read[at]))
        if len(done) == len(limits):
            break
        still = [at for at, row in enumerate(rows) if row not in done]
        if len(still) <= (1 - WASTE) * len(rows):
            rows, states = [rows[at] for at in still], [states[at] for at in still]
            texts, totals = texts[still], totals[still]
            kept = torch.tensor(still, device=tokens.device)
            tokens, state = tokens[kept], stepper.reorder(state, kept)
        log_probs, state = stepper.step(tokens, state)
    return [done[row] for row in range(len(limits))]


def chosen(log_probs: Float[Tensor, "R V"], config: SamplingConfig, draws: Draws) -> tuple[Tensor, Tensor]:
    """The highest log-probability of each row, NaN if there is one, and the token that is taken: (R,) each."""
    if config.temperature == 0:
        best, tokens = highest(log_probs, 1)
        return best[:, 0], tokens[:, 0]
    best = log_probs.amax(dim=-1, keepdim=True)
    # Where nothing is possible, something is drawn all the same.
    log_probs = log_probs.masked_fill(best == -math.inf, 0.0)
    return best[:, 0], next_tokens(log_probs, config, draws)
