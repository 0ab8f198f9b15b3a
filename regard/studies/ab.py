"""The A/B task of the lectures: a sequence of A with at most one B in it; the next is B if any B was seen.

Half of the sequences have a B, at a place drawn evenly; the answer is asked once, after the last token. So there is no
hint on the way, and knowing the answer means having carried one bit, or having looked back, over up to n steps. For
every length a model begins with fresh weights and is trained and tested on sequences of that length alone: what is
asked is whether the dependence can be learned, not whether one that is known can be stretched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from regard.errors import RegardError
from regard.layers.attention import attention_weights
from regard.mixers import mixer as mixers
from regard.models.gradient_model import GradientModel
from regard.models.table import build_model, model_config, model_entry
from regard.studies.brief import choose_settings, report_batches
from regard.studies.config import N_HEADS, ABConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import join_words, wilson_interval
from regard.text.learning import Progress

A, B = 0, 1
SOLVED_NATS, SOLVED_STEPS = 0.02, 10  # training ends early when the loss has been so low for so many updates
RIGHT = 0.99  # accuracy from which a length counts as solved, and no other learning rate is tried


@dataclass(frozen=True)
class Attempt:
    """A model at a length: how many of the test sequences it got right, and what it took."""

    model: str
    length: int
    n_right: int
    n_test: int
    n_steps: int
    rate: float

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n_test

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.n_right, self.n_test)


def measure(config: ABConfig, runs: Sequence[Any], tell: Progress) -> Finding:
    """Train and test every model at every length."""
    for name in config.models:
        if model_entry(name).is_counted:
            raise RegardError(
                f"The model '{name}' is counted and cannot be trained on this task. Leave it out of models."
            )
    found = [
        _best_attempt(name, length, config)
        for name in config.models
        for (length,) in report_batches(f"A/B, {name}", sorted(config.lengths), 1, tell)
    ]
    return _finding(config, found)


def draw_sequences(n: int, length: int, draws: torch.Generator) -> tuple[Int[Tensor, "n length"], Bool[Tensor, " n"]]:
    """n sequences of A, every second one with a B at a place drawn evenly, and whether it has one."""
    has_b = torch.arange(n) % 2 == 1
    places = torch.randint(length, (n,), generator=draws)
    tokens = torch.full((n, length), A)
    tokens[torch.arange(n), places] = torch.where(has_b, B, A)
    return tokens, has_b


def _best_attempt(name: str, length: int, config: ABConfig) -> Attempt:
    """The learning rates in turn, until one solves it; else the one that was right most often on other sequences."""
    best: tuple[int, GradientModel, int, float] | None = None
    for rate in config.rates:
        model, n_steps = _train(name, length, rate, config)
        draws = torch.Generator().manual_seed(config.seed + 1_000_003)  # to choose a rate; others to train and to test
        n_right = _n_right(model, *draw_sequences(config.n_test, length, draws))
        if best is None or n_right > best[0]:
            best = n_right, model, n_steps, rate
        if n_right >= RIGHT * config.n_test:
            break
    assert best is not None
    _, model, n_steps, rate = best
    draws = torch.Generator().manual_seed(config.seed + 2_000_003)
    n_right = _n_right(model, *draw_sequences(config.n_test, length, draws))
    return Attempt(name, length, n_right, config.n_test, n_steps, rate)


def _train(name: str, length: int, rate: float, config: ABConfig) -> tuple[GradientModel, int]:
    """A fresh model of one layer after its training, and how many updates that took.

    Positions are left out: to look for a B nobody needs to know where it is.
    """
    wanted = {
        "d_model": config.d_model, "d_hidden": 2 * config.d_model, "n_layers": 1, "n_heads": N_HEADS,
        "positions": "none", "max_context": length,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = build_model(name, model_config(name, choose_settings(name, wanted)), 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    draws = torch.Generator().manual_seed(config.seed)
    n_steps = n_low = 0
    while n_steps < config.n_steps and n_low < SOLVED_STEPS:
        tokens, has_b = draw_sequences(config.n_batch, length, draws)
        loss = functional.cross_entropy(_answers(model, tokens), has_b.long())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        n_low = n_low + 1 if loss.item() < SOLVED_NATS else 0
        n_steps += 1
    return model.eval(), n_steps


def _answers(model: GradientModel, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n 2"]:
    """log P of A and of B after the last token."""
    h, _ = model.hidden(tokens)
    return model.log_probs(mixers.positions(h, slice(-1, None)))


@torch.no_grad()
def _n_right(model: GradientModel, tokens: Int[Tensor, "n length"], has_b: Bool[Tensor, " n"]) -> int:
    rows = max(1, 2**14 // tokens.shape[1])  # attention holds rows x heads x length² numbers
    answers = [_answers(model, part).argmax(dim=-1) for part in torch.split(tokens, rows)]
    return int((torch.cat(answers) == has_b).sum())


def worked_example() -> list[tuple[str, list[float], list[float]]]:
    """The lecture's sum by hand: tokens A A B A, A = [1, 0], B = [0, 1]; (query, weights, output) by our function.

    With the query [0, 1] the scores are 0 0 1 0; for e taken as 3 the softmax is 1/6 1/6 1/2 1/6 and the output
    [1/2, 1/2], where a plain average gives [3/4, 1/4]. To take e as 3, scores are multiplied by ln 3. With the query
    [0, 10] nearly all the weight is on B.
    """
    k = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)  # (S, K)
    cases = (
        ("plain average", [0.0, 0.0], 1.0),
        ("query [0, 1], e taken as 3", [0.0, 1.0], math.log(3)),
        ("query [0, 1]", [0.0, 1.0], 1.0),
        ("query [0, 10]", [0.0, 10.0], 1.0),
    )
    rows = []
    for name, query, scale in cases:
        weights = attention_weights(torch.tensor([query], dtype=torch.float64), k, scale=scale)[0]  # (S)
        rows.append((name, weights.tolist(), (weights @ k).tolist()))
    return rows


def _example_table() -> Numbers:
    rows = tuple((name, *(f"{x:.4f}" for x in (*weights, *output))) for name, weights, output in worked_example())
    return Numbers(
        "The weighted average by hand",
        ("", "weight on A", "on A", "on B", "on A", "output, A part", "B part"),
        rows,
        note="Tokens A A B A with the embeddings A = [1, 0] and B = [0, 1]. A query [0, 1] scores them 0 0 1 0; the "
        "softmax of the scores weighs them. An average has to live with one part B in n; a long query does not.",
    )


def _finding(config: ABConfig, found: Sequence[Attempt]) -> Finding:
    lengths = sorted(config.lengths)
    by_model = {name: [a for a in found if a.model == name] for name in config.models}
    rows = [(name, *(f"{100 * a.accuracy:.1f}%" for a in attempts)) for name, attempts in by_model.items()]
    every = [
        (a.model, a.length, f"{100 * a.accuracy:.1f}%", "–".join(f"{100 * x:.1f}" for x in a.interval) + "%", a.n_steps,
         f"{a.rate:g}")
        for a in found
    ]  # fmt: skip
    return Finding(
        question="Was there any B?",
        sentence=ab_sentence(found),
        charts=(_chart(by_model, lengths),),
        summary=Numbers("Right answers", ("model", *(f"n = {n:,}" for n in lengths)), tuple(rows)),
        tables=(
            _example_table(),
            Numbers("Every training", ("model", "length", "right", "95% interval", "updates", "learning rate"),
                    tuple(every), is_folded=True),
        ),
        notes=() if len(lengths) > 1 else (f"One length, {lengths[0]:,}, was asked for: a point a model, no line.",),
        method=_method(config),
        numbers={
            "attempts": [
                {
                    "model": a.model, "length": a.length, "accuracy": a.accuracy, "interval": a.interval,
                    "n_test": a.n_test, "n_steps": a.n_steps, "rate": a.rate,
                }
                for a in found
            ],
            "worked_example": [
                {"case": name, "weights": weights, "output": output} for name, weights, output in worked_example()
            ],
        },
    )  # fmt: skip


def _chart(by_model: Mapping[str, Sequence[Attempt]], lengths: Sequence[int]) -> Chart:
    lines = tuple(
        Line(
            name,
            tuple((float(a.length), 100 * a.accuracy) for a in attempts),
            tuple((float(a.length), 100 * a.interval[0], 100 * a.interval[1]) for a in attempts),
        )
        for name, attempts in by_model.items()
    )
    return Chart(
        "Right answers by length", "length of the sequence", "% right", lines,
        is_x_log=True, is_y_log=False, y_limits=(38.0, 103.0), measured_at=tuple(map(float, lengths)),
        note="Sequences of A, half of them with one B somewhere; after the last token the model says whether there was "
        "one. Each point is a model trained on that length alone; bands are 95% intervals. Guessing gives 50%.",
    )  # fmt: skip


def ab_sentence(found: Sequence[Attempt]) -> str:
    """What the numbers say, in one sentence: who is right at the longest length, and who until when."""
    longest = max(a.length for a in found)
    names = list(dict.fromkeys(a.model for a in found))
    ends = [a for name in names for a in found if a.model == name and a.length == longest]
    first, *others = ends
    parts = [f"{first.model} is right in {percent(first.accuracy)} of the sequences"]
    parts += [f"{a.model} in {percent(a.accuracy)}" for a in others]
    solved = []
    for end in ends:
        if end.accuracy >= RIGHT:
            continue
        lengths = [a.length for a in found if a.model == end.model and a.accuracy >= RIGHT]
        solved.append(f"{end.model} {f'{max(lengths):,}' if lengths else 'none'}")
    rest = f"; the longest that was learned: {join_words(solved)}" if solved else ""
    return f"At length {longest:,} {join_words(parts)}{rest}."


def percent(share: float) -> str:
    """A share for a sentence; 100% is said only of all.

    >>> percent(1.0), percent(0.507), percent(0.998)
    ('100%', '51%', '99.8%')
    """
    if 0.99 < share < 1:
        return f"{100 * share:.1f}%"
    return f"{100 * share:.0f}%"


def _method(config: ABConfig) -> tuple[tuple[str, str], ...]:
    rates = ", ".join(f"{rate:g}" for rate in config.rates)
    return (
        (
            "Task",
            "tokens A and B; every second sequence has exactly one B, at a place drawn evenly, the others none. The "
            "answer is the next token, asked only after the last one: B if there was one, else A",
        ),
        (
            "Models",
            f"{', '.join(config.models)} of `regard models`, one layer, width {config.d_model}"
            + (f"; attention with {N_HEADS} heads and no positions" if "attention" in config.models else "")
            + ("; the bag with one hidden layer above its average" if "bag" in config.models else ""),
        ),
        (
            "Training",
            f"for each length from fresh weights: AdamW, {config.n_batch} new sequences an update, gradients clipped "
            f"to norm 1, at most {config.n_steps:,} updates, fewer where the loss stayed below {SOLVED_NATS} nats for "
            f"{SOLVED_STEPS}. Learning rates {rates} in turn until one is right in {RIGHT:.0%}; else the one that does "
            "best on sequences kept for that choice",
        ),
        ("Test", f"{config.n_test} other sequences a length; 95% intervals after Wilson (1927)"),
        ("Limits", "with more updates, other starts or hints on the way the recurrent networks get farther"),
        ("Seed", str(config.seed)),
    )
