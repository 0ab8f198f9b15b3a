"""Greedy and sampled texts for many sources at a time, each with a longest length of its own."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.decode.config import SamplingConfig
from regard.decode.generate import Draws, next_tokens
from regard.decode.highest import highest
from regard.decode.rules import Rules
from regard.decode.stepper import Constraint, Stepper
from regard.models.next_token import check_numbers

WASTE = 0.25
"""The share of rows that may have ended before they are dropped: dropping copies the whole state."""


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
) -> list[list[int]]:
    """One text for each of B sources; `stop` ends it and is its last token.

    `log_probs` are those of the first tokens, and `state`, which is used up, is what the stepper goes on from;
    `max_lengths`, which count the end mark, stand for the config's max_tokens.
    Temperature 0 is greedy: what a beam of 1 finds. What a row draws depends on the seed and its number alone.
    """
    assert config.beam is None, "a search is beam_search's"
    limits = np.broadcast_to(np.asarray(max_lengths, dtype=np.int64), len(log_probs))
    assert (limits >= 1).all(), "a text has one token at least"
    rules = Rules(stop=stop, min_length=min_length, no_repeat_ngram=no_repeat_ngram, constraint=constraint)
    draws = [np.random.default_rng([config.seed, row]) for row in range(len(limits))]
    states = [rules.start(row) for row in range(len(limits))]
    texts = np.zeros((len(limits), 0), dtype=np.int64)
    done: dict[int, list[int]] = {}
    rows = list(range(len(limits)))  # whose texts these are
    while rows:
        is_going = np.array([row not in done for row in rows])
        log_probs = rules.applied(log_probs, texts, states, is_going)
        best, tokens = chosen(log_probs, config, [draws[row] for row in rows])
        best, told = torch.stack([best.double(), tokens.double()]).cpu()  # the one time that we wait
        check_numbers(best.tolist())
        read = told.long().numpy()
        texts = np.concatenate([texts, read[:, None]], axis=1)
        for at in is_going.nonzero()[0]:
            if read[at] == stop or texts.shape[1] == limits[rows[at]]:
                done[rows[at]] = texts[at].tolist()
            else:
                states[at] = rules.step(states[at], int(read[at]))
        if len(done) == len(limits):
            break
        still = [at for at, row in enumerate(rows) if row not in done]
        if len(still) <= (1 - WASTE) * len(rows):
            rows, states, texts = [rows[at] for at in still], [states[at] for at in still], texts[still]
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
