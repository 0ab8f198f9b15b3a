"""Greedy and sampled texts, token by token."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decode.beam import beam_search
from regard.decode.config import SamplingConfig
from regard.decode.sampling import filtered, pick
from regard.errors import RegardError
from regard.models.next_token import NextToken


def generate(
    model: NextToken, prompt: Sequence[int], config: SamplingConfig, *, n: int = 1, stop: int | None = None
) -> Iterator[list[int | None]]:
    """Continue `prompt` (empty: from scratch) n times; yields the next token of every text as soon as it is known.

    A text ends before max_tokens where it draws the token `stop`, which is its last; from then on it yields None.
    Text number i is the same whatever n is. With `beam` the n best texts are searched for first, then yielded.
    """
    check_prompt(prompt, model.max_context)
    if config.beam is not None:
        yield from _side_by_side(beam_search(model, prompt, config.beam, config.max_tokens, stop=stop, n=n), n)
        return
    draws = [np.random.default_rng([config.seed, row]) for row in range(n)]
    log_probs, state = model.start(torch.tensor([list(prompt)] * n, dtype=torch.long), len(prompt) + config.max_tokens)
    is_open = [True] * n
    for i in range(config.max_tokens):
        tokens = _next(log_probs, config, draws)
        values = tokens.tolist()
        yield [token if going else None for token, going in zip(values, is_open, strict=True)]
        is_open = [going and token != stop for token, going in zip(values, is_open, strict=True)]
        if not any(is_open):
            return
        if i + 1 < config.max_tokens:
            log_probs, state = model.step(tokens, state)


def generate_all(
    model: NextToken, prompt: Sequence[int], config: SamplingConfig, *, n: int = 1, stop: int | None = None
) -> list[list[int]]:
    """The n continuations of `generate`, whole."""
    texts: list[list[int]] = [[] for _ in range(n)]
    for tokens in generate(model, prompt, config, n=n, stop=stop):
        for text, token in zip(texts, tokens, strict=True):
            if token is not None:
                text.append(token)
    return texts


def check_prompt(prompt: Sequence[int], max_context: int | None) -> None:
    if max_context is not None and len(prompt) >= max_context:
        raise RegardError(
            f"The prompt has {len(prompt)} tokens; this model sees {max_context} at most, its start mark among them. "
            f"Shorten the prompt to {max_context - 1} tokens, or train a model with a larger max_context."
        )


def _next(log_probs: Tensor, config: SamplingConfig, draws: list[np.random.Generator]) -> Tensor:
    if config.temperature == 0:
        return log_probs.argmax(dim=-1)
    uniform = torch.tensor([draw.random() for draw in draws], dtype=torch.float64)
    return pick(filtered(log_probs, config), uniform)


def _side_by_side(texts: list[list[int]], n: int) -> Iterator[list[int | None]]:
    texts = texts + [[]] * (n - len(texts))  # a search over a tiny vocabulary may find fewer
    for i in range(max(map(len, texts))):
        yield [text[i] if i < len(text) else None for text in texts]
