"""Greedy and sampled texts: of a language model token by token, and of many sources at a time."""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.beam import Hypothesis, search
from regard.decode.config import SamplingConfig
from regard.decode.rules import IMPOSSIBLE, Rules
from regard.decode.sampling import filter_log_probs, pick
from regard.decode.stepper import Constraint, Stepper
from regard.errors import RegardError
from regard.kernels.topk import topk
from regard.models.next_token import NextToken, check_numbers
from regard.untrusted.values import quote

Draws = list[np.random.Generator]
MAX_TEXTS = 10_000  # that are written at once: each holds a state
WASTE = 0.25
"""The share of rows that may have ended before they are dropped: dropping copies the whole state."""


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
        yield from _search_each(model, prompts.tolist(), config.beam, config.max_tokens, stop)
        return
    draws = [np.random.default_rng([config.seed, row]) for row in range(len(prompts))]
    log_probs, state = model.start(prompts, prompts.shape[1] + config.max_tokens)
    check_numbers(log_probs.amax(dim=-1).tolist())
    going = set(range(len(prompts)))
    for tokens in _continue_each(model, log_probs, state, config, draws):
        for row, token in enumerate(tokens):
            if row in going:
                yield row, token
                if token == stop:
                    going.remove(row)
        going = {row for row in going if not is_done(row)}
        if not going:
            return


def _continue_each(
    model: NextToken, log_probs: Float[Tensor, "B V"], state: Any, config: SamplingConfig, draws: Draws
) -> Iterator[list[int]]:
    """Yield one token a row, max_tokens times."""
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
    """Continue every prompt as `generate` does, and return whole texts."""
    texts: list[list[int]] = [[] for _ in prompts]
    for row, token in generate(model, prompts, config, stop=stop):
        texts[row].append(token)
    return texts


def check_n_texts(n: Any) -> int:
    """Refuse a number of texts that is none, or more than are held at once."""
    is_whole = isinstance(n, SupportsIndex) and not isinstance(n, bool)  # numpy's whole numbers too
    if not is_whole or not 1 <= operator.index(n) <= MAX_TEXTS:
        raise RegardError(
            f"n is how many texts are written at once, a whole number from 1 to {MAX_TEXTS:,}, not {quote(n)}. For "
            "more, ask again with another seed."
        )
    return operator.index(n)


def check_prompt(n_tokens: int, max_context: int | None) -> None:
    if max_context is not None and n_tokens >= max_context:
        raise RegardError(
            f"The prompt has {n_tokens} tokens; this model sees {max_context} at most, its start mark among them. "
            f"Shorten the prompt to {max_context - 1} tokens, or train a model with a larger max_context."
        )


def next_tokens(log_probs: Float[Tensor, "B V"], config: SamplingConfig, draws: Draws) -> Tensor:
    """Take one token a row: (B,)."""
    if config.temperature == 0:
        return log_probs.argmax(dim=-1)
    uniform = torch.tensor([draw.random() for draw in draws], dtype=torch.float64)
    return pick(filter_log_probs(log_probs, config), uniform)


def _search_each(
    model: NextToken, prompts: list[list[int]], beam: int, max_tokens: int, stop: int | None
) -> Iterator[tuple[int, int]]:
    best: dict[tuple[int, ...], Iterator[Hypothesis]] = {}
    for row, prompt in enumerate(prompts):
        if tuple(prompt) not in best:
            width = max(beam, prompts.count(prompt))
            best[tuple(prompt)] = iter(search(model, prompt, width, max_tokens, stop=stop))
        hypothesis = next(best[tuple(prompt)], None)  # a tiny vocabulary may hold fewer texts than were asked for
        yield from ((row, token) for token in (hypothesis.tokens if hypothesis else ()))


class Decoded(NamedTuple):
    """A text and its log P, which is the model's own: neither the temperature nor a filter changes it."""

    tokens: list[int]
    log_prob: float


def sample_texts(
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
    """Write one text for each of B sources; `stop` ends it and is its last token.

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
        log_probs = rules.apply(log_probs, texts, states, is_going)
        best, tokens = choose(log_probs, config, [draws[row] for row in rows])
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
        going = [at for at, row in enumerate(rows) if row not in done]
        if len(going) <= (1 - WASTE) * len(rows):
            rows, states = [rows[at] for at in going], [states[at] for at in going]
            texts, totals = texts[going], totals[going]
            kept = torch.tensor(going, device=tokens.device)
            tokens, state = tokens[kept], stepper.reorder(state, kept)
        log_probs, state = stepper.step(tokens, state)
    return [done[row] for row in range(len(limits))]


def choose(log_probs: Float[Tensor, "R V"], config: SamplingConfig, draws: Draws) -> tuple[Tensor, Tensor]:
    """Take a token of each row; returns the row's highest log-probability, NaN if there is one, and it: (R,) each."""
    if config.temperature == 0:
        best, tokens = topk(log_probs, 1)
        return best[:, 0], tokens[:, 0]
    best = log_probs.amax(dim=-1, keepdim=True)
    # Where nothing is possible, something is drawn all the same.
    log_probs = log_probs.masked_fill(best == -math.inf, 0.0)
    return best[:, 0], next_tokens(log_probs, config, draws)


class StopText:
    """Passes text on until one of the stop strings would appear, and holds back what may yet become one.

    Tokens arrive one at a time and know nothing of strings.

    The one that is complete first counts, so that it does not matter in which pieces the text comes.

    >>> stop = StopText(["END"])
    >>> stop.push("the E"), stop.push("N"), stop.push("D now"), stop.is_stopped
    ('the ', '', '', True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [s for s in stops if s]
        self._held = ""
        self.is_stopped = False

    def push(self, text: str) -> str:
        """What can be shown for certain after `text` has come."""
        if self.is_stopped:
            return ""
        self._held += text
        found = [(at + len(s), at) for s in self._stops if (at := self._held.find(s)) >= 0]
        if found:
            self.is_stopped = True
            return self._held[: min(found)[1]]
        keep = max((_overlap(self._held, s) for s in self._stops), default=0)
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def flush(self) -> str:
        """What was held back, once no more text comes."""
        shown, self._held = ("" if self.is_stopped else self._held), ""
        return shown


def _overlap(text: str, stop: str) -> int:
    """How many last characters of `text` are the beginning of `stop`."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
