"""The A/B task of the lectures: a sequence of A with at most one B in it; the next is B if any B was seen.

Half of the sequences have a B, at a place drawn evenly; the answer is asked once, after the last token. So there is no
hint on the way, and knowing the answer means having carried one bit, or having looked back, over up to n steps. For
every length a model begins with fresh weights and is trained and tested on sequences of that length alone: what is
asked is whether the dependence can be learned, not whether one that is known can be stretched.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from regard.files import write_atomically
from regard.layers.attention import attention_weights
from regard.mixers.mixer import select_positions
from regard.models.gradient_model import GradientModel
from regard.models.table import build_model, model_config
from regard.run.jobs import PROCESS_BYTES, Job, share_threads
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.config import N_HEADS, ABConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import Spread, percent, say_seeds, wilson_interval
from regard.studies.trainer import Trainer
from regard.text.learning import Progress

A, B = 0, 1
SOLVED_NATS, SOLVED_STEPS = 0.02, 10  # training ends early when the loss has been so low for so many updates
RIGHT = 0.99  # accuracy from which a length counts as solved


@dataclass(frozen=True)
class Attempt:
    """A model at a length, with a seed and a learning rate: how many of the test sequences it got right."""

    model: str
    length: int
    seed: int
    rate: float
    n_chosen: int
    """Right answers on other sequences, by which a rate is chosen."""
    n_right: int
    n_test: int
    n_steps: int

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n_test

    @property
    def is_solved(self) -> bool:
        return self.accuracy >= RIGHT


def measure(config: ABConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train and test every model at every length, with every seed and learning rate."""
    brief.refuse_counted(config.models)
    with brief.open_workplace() as folder:
        parts = {
            folder / f"{name}-{seed}.json": config.replace(models=(name,), seed=seed, n_seeds=1)
            for seed in brief.list_seeds(config)
            for name in config.models
        }
        if n_jobs > 1:
            jobs = [_plan_job(path, part, n_jobs) for path, part in parts.items()]
            Trainer(tell, n_jobs).run_ahead(jobs, folder / "logs")
        found: list[Attempt] = []
        for path, part in brief.watch("models and seeds", list(parts.items()), tell):
            if path.exists():
                found += (Attempt(**attempt) for attempt in json.loads(path.read_text()))
            else:  # one at a time; or its process died
                found += _attempt_all(part, tell)
    return _finding(config, found)


def _attempt_all(config: ABConfig, tell: Progress) -> list[Attempt]:
    """Every length and learning rate of the one model and seed that `config` has."""
    (name,) = config.models
    return [
        _attempt(name, length, config.seed, rate, config)
        for length in brief.watch(f"A/B, {name}", sorted(config.lengths), tell)
        for rate in config.rates
    ]


def _plan_job(path: Path, config: ABConfig, n_jobs: int) -> Job:
    given = {"n_threads": share_threads(n_jobs), "config": config.to_dict()}
    scores = 4 * config.n_batch * N_HEADS * max(config.lengths) ** 2  # bytes of the weights of attention
    return Job(path.stem, "regard.studies.ab", str(path), json.dumps(given), PROCESS_BYTES + 2 * scores)


def main() -> None:
    """Make the attempts that standard input describes, and write them into the file that is named."""
    given = json.loads(sys.stdin.read())
    torch.set_num_threads(given["n_threads"])
    found = _attempt_all(ABConfig.from_dict(given["config"]), lambda *_: None)
    write_atomically(Path(sys.argv[1]), json.dumps([asdict(attempt) for attempt in found]).encode())


def draw_sequences(n: int, length: int, draws: torch.Generator) -> tuple[Int[Tensor, "n length"], Bool[Tensor, " n"]]:
    """n sequences of A, every second one with a B at a place drawn evenly, and whether it has one."""
    has_b = torch.arange(n) % 2 == 1
    places = torch.randint(length, (n,), generator=draws)
    tokens = torch.full((n, length), A)
    tokens[torch.arange(n), places] = torch.where(has_b, B, A)
    return tokens, has_b


def _attempt(name: str, length: int, seed: int, rate: float, config: ABConfig) -> Attempt:
    model, n_steps = _train(name, length, seed, rate, config)
    n_chosen, n_right = (
        _n_right(model, *draw_sequences(config.n_test, length, torch.Generator().manual_seed(other)))
        for other in (seed + 1_000_003, seed + 2_000_003)  # to choose a rate, and to test; others to train
    )
    return Attempt(name, length, seed, rate, n_chosen, n_right, config.n_test, n_steps)


def _train(name: str, length: int, seed: int, rate: float, config: ABConfig) -> tuple[GradientModel, int]:
    """A fresh model of one layer after its training, and how many updates that took.

    Positions are left out: to look for a B nobody needs to know where it is.
    """
    wanted = {
        "d_model": config.d_model, "d_hidden": 2 * config.d_model, "n_layers": 1, "n_heads": N_HEADS,
        "positions": "none", "max_context": length,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(name, model_config(name, brief.choose_settings(name, wanted)), 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    draws = torch.Generator().manual_seed(seed)
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
    return model.log_probs(select_positions(h, slice(-1, None)))


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


class Trials(NamedTuple):
    """Of one model and length the attempt of each seed: with the learning rate that did best on other sequences."""

    model: str
    length: int
    attempts: tuple[Attempt, ...]

    @property
    def n_solved(self) -> int:
        return sum(attempt.is_solved for attempt in self.attempts)

    @property
    def share_solved(self) -> Spread:
        """Seeds that solved it, in per cent."""
        return _percent_of(self.n_solved, len(self.attempts))

    @property
    def right(self) -> Spread:
        """Right answers in per cent. Over seeds without an interval: they are all or half, and little between."""
        if len(self.attempts) > 1:
            return Spread(100 * fmean(attempt.accuracy for attempt in self.attempts))
        return _percent_of(self.attempts[0].n_right, self.attempts[0].n_test)


def _percent_of(n: int, n_all: int) -> Spread:
    """A share in per cent with its interval after Wilson (1927)."""
    return Spread(*(100 * share for share in (n / n_all, *wilson_interval(n, n_all))))


def choose_rates(found: Sequence[Attempt]) -> list[Trials]:
    """The attempts by model and length: of each seed the one whose rate did best where rates are chosen."""
    best: dict[tuple[str, int], dict[int, Attempt]] = {}
    for attempt in found:
        seeds = best.setdefault((attempt.model, attempt.length), {})
        if attempt.seed not in seeds or attempt.n_chosen > seeds[attempt.seed].n_chosen:
            seeds[attempt.seed] = attempt
    return [Trials(model, length, tuple(seeds.values())) for (model, length), seeds in best.items()]


def _finding(config: ABConfig, found: Sequence[Attempt]) -> Finding:
    lengths, trials = sorted(config.lengths), choose_rates(found)
    by_model = {name: {t.length: t for t in trials if t.model == name} for name in config.models}
    n = config.n_seeds
    return Finding(
        question="Was there any B?",
        sentence=ab_sentence(trials),
        charts=_charts(by_model, lengths, n),
        summary=Numbers(
            f"Right answers, and how many of {n} seeds solved it" if n > 1 else "Right answers",
            ("model", *(f"n = {length:,}" for length in lengths)),
            tuple(
                (name, *(f"{t.right.mean:.0f}%" + f" {t.n_solved}/{n}" * (n > 1) for t in of.values()))
                for name, of in by_model.items()
            ),
            note=f"Solved: right in at least {RIGHT:.0%} of the test sequences, with the learning rate that did best "
            "on other sequences.",
        ),
        tables=(_rate_table(config, found), _example_table(), _every(found)),
        notes=() if len(lengths) > 1 else (f"One length, {lengths[0]:,}, was asked for: a point a model, no line.",),
        method=_method(config),
        numbers={
            "attempts": [{**asdict(a), "accuracy": a.accuracy, "is_solved": a.is_solved} for a in found],
            "solved": [
                {"model": t.model, "length": t.length, "n": t.n_solved, **asdict(t.share_solved)} for t in trials
            ],
            "worked_example": [
                {"case": name, "weights": weights, "output": output} for name, weights, output in worked_example()
            ],
        },
    )


def _rate_table(config: ABConfig, found: Sequence[Attempt]) -> Numbers:
    lengths = sorted(config.lengths)
    rows = []
    for name in config.models:
        for rate in config.rates:
            of = [a for a in found if (a.model, a.rate) == (name, rate)]
            cells = (f"{sum(a.is_solved for a in of if a.length == n)} of {config.n_seeds}" for n in lengths)
            rows.append((name, f"{rate:g}", *cells))
    columns = ("model", "learning rate", *(f"n = {n:,}" for n in lengths))
    return Numbers("Solved, by learning rate", columns, tuple(rows), note="Seeds that solved it with that rate alone.")


def _every(found: Sequence[Attempt]) -> Numbers:
    rows = tuple((a.model, a.length, a.seed, f"{a.rate:g}", f"{100 * a.accuracy:.1f}%", a.n_steps) for a in found)
    columns = ("model", "length", "seed", "learning rate", "right", "updates")
    return Numbers("Every training", columns, rows, is_folded=True)


def _charts(by_model: Mapping[str, Mapping[int, Trials]], lengths: Sequence[int], n_seeds: int) -> tuple[Chart, ...]:
    def chart(title: str, y_label: str, spreads: Callable[[Trials], Spread], low: float, note: str) -> Chart:
        return Chart(
            title, "length of the sequence", y_label,
            tuple(Line.over(name, {n: spreads(t) for n, t in of.items()}) for name, of in by_model.items()),
            is_x_log=True, is_y_log=False, y_limits=(low, 103.0), measured_at=tuple(map(float, lengths)), note=note,
        )  # fmt: skip

    right = chart(
        "Right answers by length", "% right", lambda t: t.right, 38.0,
        "Sequences of A, half of them with one B somewhere; after the last token the model says whether there was one. "
        f"Each point is for models trained on that length alone{', the mean over seeds' * (n_seeds > 1)}. Guessing "
        "gives 50%.",
    )  # fmt: skip
    if n_seeds == 1:
        return (right,)
    counts = {
        t.n_solved: t.share_solved for of in by_model.values() for t in of.values()
    }  # bands would hide each other
    sure = join_names([f"{n} of {n_seeds} {s.low:.0f} to {s.high:.0f}%" for n, s in sorted(counts.items())])
    note = f"Seeds that were right in at least {RIGHT:.0%}. The 95% intervals (Wilson 1927) are for {sure}."
    return right, chart("Solved by length", "% of seeds", lambda t: Spread(t.share_solved.mean), -3.0, note)


def ab_sentence(trials: Sequence[Trials]) -> str:
    """What the numbers say, in one sentence: who solves the longest length, and who which."""
    longest = max(t.length for t in trials)
    ends = [t for t in trials if t.length == longest]
    n = len(ends[0].attempts)
    if n == 1:
        right = [f"{t.model} {'is right ' * (i == 0)}in {percent(t.right.mean / 100)}" for i, t in enumerate(ends)]
        begin = f"{say_seeds(n)}: at length {longest:,} {join_names(right)} of the sequences"
    else:
        solved = [f"{t.model} in {t.n_solved} ({t.share_solved.low:.0f} to {t.share_solved.high:.0f}%)" for t in ends]
        begin = f"{say_seeds(n)}: length {longest:,} is solved by {join_names(solved)}"
    others = []
    for end in ends:
        if end.n_solved < n:
            lengths = [t.length for t in trials if t.model == end.model and t.n_solved == n]
            others.append(f"{end.model} {f'{max(lengths):,}' if lengths else 'none'}")
    every = "the longest that was learned" if n == 1 else "the longest that every seed solved"
    return begin + (f"; {every}: {join_names(others)}." if others else ".")


def _method(config: ABConfig) -> dict[str, str]:
    rates = ", ".join(f"{rate:g}" for rate in config.rates)
    return {
        "Task": "tokens A and B; every second sequence has exactly one B, at a place drawn evenly, the others none. "
        "The answer is the next token, asked only after the last one: B if there was one, else A",
        "Models": f"{', '.join(config.models)} of `regard models`, one layer, width {config.d_model}"
        + (f"; attention with {N_HEADS} heads and no positions" if "attention" in config.models else "")
        + ("; the bag with one hidden layer above its average" if "bag" in config.models else ""),
        "Training": f"for each length from fresh weights: AdamW, {config.n_batch} new sequences an update, gradients "
        f"clipped to norm 1, at most {config.n_steps:,} updates, fewer where the loss stayed below {SOLVED_NATS} "
        f"nats for {SOLVED_STEPS}. Learning rates {rates}: of each seed the one that does best on {config.n_test} "
        "sequences kept for that choice",
        "Test": f"{config.n_test} other sequences; the interval of a share of seeds is Wilson's (1927)",
        "Limits": "with more updates, other starts or hints on the way the recurrent networks get farther",
        **brief.describe_seeds(config, ()),
    }


if __name__ == "__main__":
    main()
