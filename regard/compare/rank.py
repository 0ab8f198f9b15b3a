"""From answers to a ranking: scores with intervals, the order, a test for each pair, what scores cost, examples."""

from __future__ import annotations

import base64
import dataclasses
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.compare.contenders import Entry, FinishedRun, mean_curve
from regard.compare.cost_to_score import cost_to_score
from regard.compare.headline import write_headline
from regard.compare.old_results import SCHEMA
from regard.compare.result import (
    Comparison,
    Contender,
    Example,
    PairResult,
    RunResult,
    Score,
    Setup,
)
from regard.score.bootstrap import compare_pair, score_with_interval
from regard.score.figures import Measure
from regard.score.judges import Counts, Judge
from regard.tasks.test_set import TestSet

N_EXAMPLES = 10
SIDE = 176  # pixels of a picture in the page


def rank(
    entries: Sequence[Entry],
    judge: Judge | None,
    setup: Setup,
    *,
    levels: Sequence[float],
    examples: Sequence[Example],
    out: Path,
) -> Comparison:
    """Score every contender that has answers, and put them in order.

    Contenders whose tokenizer loses text are ranked below all others: their score leaves something out.
    """
    counts: dict[str, Counts] = {}
    if judge is not None:  # else nothing was answered
        counts = {e.name: np.stack([judge.counts(answers) for answers in e.answers]) for e in entries if e.answers}
    contenders = [_score(entry, counts.get(entry.name), judge, setup.watched_measure, out) for entry in entries]
    return put_in_order(contenders, counts, judge, setup, levels=levels, examples=examples)


def put_in_order(
    contenders: Sequence[Contender],
    counts: dict[str, Counts],
    judge: Judge | None,
    setup: Setup,
    *,
    levels: Sequence[float] = (),
    examples: Sequence[Example] = (),
) -> Comparison:
    """The comparison of scored contenders; `counts` are what the judge counted, (S, n, k), by name."""
    sign = -1 if setup.is_higher_better else 1
    scored = [(c, c.score.value) for c in contenders if c.score is not None]
    ranked = [c for c, _ in sorted(scored, key=lambda row: (not row[0].is_comparable, sign * row[1]))]
    pairs = []
    for place, worse in enumerate(ranked[1:]):
        for better in dict.fromkeys((ranked[place].name, ranked[0].name)):
            first = next(c for c in ranked if c.name == better)
            if judge is not None and first.is_comparable == worse.is_comparable:
                pairs.append(_test(judge, first, worse, counts))
    costs = cost_to_score([c.curve for c in contenders], levels, is_upwards=setup.is_watched_upwards)
    return Comparison(
        schema=SCHEMA,
        headline=write_headline(contenders, ranked, pairs, costs, setup),
        setup=setup,
        contenders=tuple(contenders),
        ranking=tuple(c.name for c in ranked),
        pairs=tuple(pairs),
        costs=costs,
        examples=tuple(examples),
    )


def _test(judge: Judge, better: Contender, worse: Contender, counts: dict[str, Counts]) -> PairResult:
    have_seeds = better.has_seeds, worse.has_seeds
    found = compare_pair(judge, counts[better.name], counts[worse.name], have_seeds=have_seeds)
    return PairResult(better=better.name, worse=worse.name, **dataclasses.asdict(found))


def _score(entry: Entry, counts: Counts | None, judge: Judge | None, watched: Measure, out: Path) -> Contender:
    runs, first = entry.runs, entry.runs[0] if entry.runs else None
    config = first.config.to_dict() if first else dict(entry.config)
    curve = mean_curve(runs, watched) if runs else ()
    best = max if watched.is_higher_better else min
    valid = [best((p.score for p in mean_curve([run], watched)), default=None) for run in runs]
    known = [value for value in valid if value is not None]
    contender = Contender(
        name=entry.name,
        model=str(config["model"]["name"]),
        about=first.about() if first else "",
        config=_plain({name: part for name, part in config.items() if isinstance(part, dict)}),
        n_parameters=first.facts.n_parameters if first else None,
        size_note=entry.size_note,
        is_comparable=entry.is_comparable,
        has_seeds=first.has_seeds if first else True,
        runs=(),
        failures=tuple(entry.failures),
        score=None,
        valid=float(np.mean(known)) if known and len(known) == len(valid) else None,
        curve=curve,
        views=entry.views,
    )
    if counts is None or judge is None:
        return contender
    drawn = score_with_interval(judge, counts)
    results = [_run_result(run, judge.score(c.sum(axis=0)), out) for run, c in zip(runs, counts, strict=True)]
    score = Score(value=drawn.score, low=drawn.low, high=drawn.high, others=judge.other_scores(entry.answers))
    return replace(contender, runs=tuple(results), score=score)


def _run_result(run: FinishedRun, score: float, out: Path) -> RunResult:
    folder = run.folder.relative_to(out) if run.folder.is_relative_to(out) else run.folder
    spent = {name: run.spent(name) for name in ("tokens", "flops", "seconds")}
    return RunResult(run=str(folder), seed=run.config.seed, score=score, **spent)


def choose_examples(test_set: TestSet, chosen: Sequence[int], outputs: Sequence[Sequence[str]]) -> tuple[Example, ...]:
    """Evenly over the test items, of those that not all contenders answer alike, as long as there are some."""
    if not test_set.references or not outputs:
        return ()
    differ = [k for k in range(len(chosen)) if len({lines[k] for lines in outputs}) > 1] or list(range(len(chosen)))
    places = np.linspace(0, len(differ) - 1, min(N_EXAMPLES, len(differ))).round().astype(int)
    found = []
    for k in dict.fromkeys(differ[place] for place in places.tolist()):
        i = chosen[k]
        example = Example(
            number=i + 1,
            source=test_set.sources[i],
            references=test_set.references[i],
            outputs=tuple(str(lines[k]) for lines in outputs),
            picture=None if test_set.picture is None else _encode_picture(test_set.picture(i)),
        )
        found.append(example)
    return tuple(found)


def _encode_picture(pixels: Any) -> str:
    """As the model sees it, small enough to be a part of the page."""
    from PIL import Image  # slow to import, and only pictures need it

    image = Image.fromarray(pixels)
    image.thumbnail((SIDE, SIDE))
    held = io.BytesIO()
    image.save(held, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(held.getvalue()).decode()


def _plain(value: Any) -> Any:
    """Lists for tuples, as JSON gives them back."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
