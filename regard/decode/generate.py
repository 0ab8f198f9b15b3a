"""Greedy and sampled texts, token by token."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.beam import Hypothesis, search
from regard.decode.config import SamplingConfig
from regard.decode.sampling import filtered, pick
from regard.errors import RegardError
from regard.models.next_token import NextToken, check_numbers

Draws = list[np.random.Generator]


def generate(
    model: NextToken,
    prompts: Int[Tensor, "B T"],
    config: SamplingConfig,
    *,
    stop: int | None = None,
    is_done: Callable[[int], bool] = lambda row: False,
) -> Iterator[tuple[int, int]]:
    """Continue every prompt (T = 0: from scratch); yields (row, its next token) as soon as it is known.

    A text ends after max_tokens, with the token `stop`, which is its last, or where `is_done(row)` has come true by
    the time it would get its next token. What a row draws depends on the seed and its number alone, not on the rows
    beside it. With `beam` the continuations are searched for first, then yielded: a prompt that comes n times gets
    its n best ones.
    """
    check_prompt(prompts.shape[1], model.max_context)
    if config.beam is not None:
        yield from _searched(model, prompts.tolist(), config.beam, config.max_tokens, stop)
        return
    draws = [np.random.default_rng([config.seed, row]) for row in range(len(prompts))]
    log_probs, state = model.start(prompts, prompts.shape[1] + config.max_tokens)
    check_numbers(log_probs.amax(dim=-1).tolist())
    going = set(range(len(prompts)))
    for tokens in _continued(model, log_probs, state, config, draws):
        for row, token in enumerate(tokens):
            if row in going:
                yield row, token
                if token == stop:
                    going.remove(row)
        going = {row for row in going if not is_done(row)}
        if not going:
            return


def _continued(
    model: NextToken, log_probs: Float[Tensor, "B V"], state: Any, config: SamplingConfig, draws: Draws
) -> Iterator[list[int]]:
    """One token a row, max_tokens times."""
    if config.temperature == 0:
        yield from model.greedy(log_probs, state, config.max_tokens)
        return
    for i in range(config.max_tokens):
        tokens = next_tokens(log_probs, config, draws)
        drawn = tokens.tolist()
        if max(drawn) >= log_probs.shape[1]:  # a sum that never passes the aim: it is NaN
            check_numbers([math.nan])
        yield drawn
        if i + 1 < config.max_tokens:
            log_probs, state = model.step(tokens, state)


def generate_all(
    model: NextToken, prompts: Int[Tensor, "B T"], config: SamplingConfig, *, stop: int | None = None
) -> list[list[int]]:
    """The continuations that `generate` yields, whole."""
    texts: list[list[int]] = [[] for _ in prompts]
    for row, token in generate(model, prompts, config, stop=stop):
        texts[row].append(token)
    return texts


def check_prompt(n_tokens: int, max_context: int | None) -> None:
    if max_context is not None and n_tokens >= max_context:
        raise RegardError(
            f"The prompt has {n_tokens} tokens; this model sees {max_context} at most, its start mark among them. "
            f"Shorten the prompt to {max_context - 1} tokens, or train a model with a larger max_context."
        )


def next_tokens(log_probs: Float[Tensor, "B V"], config: SamplingConfig, draws: Draws) -> Tensor:
    """One token a row: (B,)."""
    if config.temperature == 0:
        return log_probs.argmax(dim=-1)
    uniform = torch.tensor([draw.random() for draw in draws], dtype=torch.float64)
    return pick(filtered(log_probs, config), uniform)


def _searched(
    model: NextToken, prompts: list[list[int]], beam: int, max_tokens: int, stop: int | None
) -> Iterator[tuple[int, int]]:
    best: dict[tuple[int, ...], Iterator[Hypothesis]] = {}
    for row, prompt in enumerate(prompts):
        if tuple(prompt) not in best:
            width = max(beam, prompts.count(prompt))
            best[tuple(prompt)] = iter(search(model, prompt, width, max_tokens, stop=stop))
        hypothesis = next(best[tuple(prompt)], None)  # a tiny vocabulary may hold fewer texts than were asked for
        yield from ((row, token) for token in (hypothesis.tokens if hypothesis else ()))
