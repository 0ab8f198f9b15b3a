"""From answers to a ranking: scores with intervals, the order, a test for each pair, what scores cost, examples."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from regard.compare.contenders import Entry, FinishedRun, mean_curve
from regard.compare.cost_to_score import cost_to_score
from regard.compare.gates import find_warnings
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
    group_by_tokenizer,
)
from regard.lens.views import PositionPoint, WindowLosses
from regard.score.by_length import LengthScore, bin_lengths, score_by_length
from regard.score.figures import Measure, p_text
from regard.score.judges import Judge, score_interval
from regard.score.significance import (
    LEVEL,
    Estimate,
    Sample,
    correct_by_holm,
    take_sample,
    tell_power,
    why_unsettled,
)
from regard.tasks.test_set import TestSet

N_EXAMPLES = 10
SIDE = 176  # pixels of a picture in the page


def rank(
    entries: Sequence[Entry],
    judge: Judge | None,
    setup: Setup,
    documents: Sequence[int],
    *,
    levels: Sequence[float],
    examples: Sequence[Example],
    warnings: Sequence[str],
    out: Path,
    lengths: Sequence[int] | None = None,
) -> Comparison:
    """Score every contender that has answers, and put them in order; `documents` are those of the test items.

    With `lengths`, the words of their sources, they are scored by these too.
    """
    by_length: dict[str, tuple[LengthScore, ...]] = {}
    samples: dict[str, Sample] = {}
    if judge is not None:  # else nothing was answered
        for entry in entries:
            if entry.answers:
                counts = np.stack([judge.counts(answers) for answers in entry.answers])
                samples[entry.name] = take_sample(judge.score, counts, documents)
                if lengths is not None and len(bins := bin_lengths(lengths)) > 1:
                    by_length[entry.name] = score_by_length(judge.score, counts, documents, lengths, bins)
    contenders = [_score(entry, samples.get(entry.name), judge, setup.watched_measure, out) for entry in entries]
    contenders = [replace(c, by_length=by_length.get(c.name, ())) for c in contenders]
    return put_in_order(contenders, samples, setup, levels=levels, examples=examples, warnings=warnings)


def put_in_order(
    contenders: Sequence[Contender],
    samples: Mapping[str, Sample],
    setup: Setup,
    *,
    levels: Sequence[float] = (),
    examples: Sequence[Example] = (),
    warnings: Sequence[str] = (),
) -> Comparison:
    """The comparison of scored contenders; `samples` are their scores without each document, by name.

    Contenders whose tokenizers lose text are ranked behind all others, each tokenizer's by themselves: their scores
    leave something out, and not the same.
    """
    sign = -1 if setup.is_higher_better else 1
    scored = [(c, c.score.value) for c in contenders if c.score is not None]
    groups = group_by_tokenizer([c for c, _ in sorted(scored, key=lambda row: sign * row[1])])
    tested = [(a, b) for group in groups for a, b in combinations(group, 2)]
    estimates = [samples[b.name] - samples[a.name] for a, b in tested]
    if setup.is_higher_better:
        estimates = [samples[a.name] - samples[b.name] for a, b in tested]
    corrected = correct_by_holm([estimate.p for estimate in estimates])
    pairs = [
        _judge_pair(*both, estimate, p_holm, setup)
        for both, estimate, p_holm in zip(tested, estimates, corrected, strict=True)
    ]
    ranked = [c for group in groups for c in group]
    costs = cost_to_score([c.curve for c in contenders], levels, is_upwards=setup.is_watched_upwards)
    return Comparison(
        schema=SCHEMA,
        headline=write_headline(contenders, ranked, pairs, costs, setup),
        setup=setup,
        contenders=tuple(contenders),
        ranking=tuple(c.name for c in ranked),
        pairs=tuple(pairs),
        warnings=(*warnings, *find_warnings(contenders, setup)),
        power=_tell_power(tested, estimates, setup) if pairs else "",
        costs=costs,
        examples=tuple(examples),
    )


def _judge_pair(better: Contender, worse: Contender, found: Estimate, p_holm: float, setup: Setup) -> PairResult:
    """One difference with its interval, and whether it is settled."""
    assert worse.score is not None
    why = p_text(p_holm) if p_holm >= LEVEL else why_unsettled(setup.n_documents or 1, _count_seeds((better, worse)))
    low, high = found.interval
    return PairResult(
        better=better.name, worse=worse.name, difference=found.value, low=low, high=high,
        relative=found.value / abs(worse.score.value) if worse.score.value else math.nan,
        p=found.p, p_holm=p_holm, n_effective=found.n_effective, is_settled=not why, why=why,
    )  # fmt: skip


def _count_seeds(contenders: Sequence[Contender]) -> list[int]:
    """Of every contender that draws random numbers."""
    return [len(c.runs) for c in contenders if c.has_seeds]


def _tell_power(tested: Sequence[tuple[Contender, Contender]], estimates: Sequence[Estimate], setup: Setup) -> str:
    """Which differences can be settled, and how many independent items the test items are worth."""
    pairs = [(estimate, _count_seeds(both)) for estimate, both in zip(estimates, tested, strict=True)]
    text = tell_power(pairs, setup.n_documents or 1, lambda gap: f"{setup.measure.gap(gap)} {setup.metric}")
    n_effective = median(estimate.n_effective for estimate in estimates)
    if n_effective > 0.95 * setup.n_tested:
        return text
    return f"{text} The {setup.n_tested:,} {setup.items} tell as much as about {n_effective:.0f} independent ones."


def _score(entry: Entry, sample: Sample | None, judge: Judge | None, watched: Measure, out: Path) -> Contender:
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
        n_non_embedding=entry.n_non_embedding,
        size_note=entry.size_note,
        lossy=entry.lossy,
        has_seeds=first.has_seeds if first else True,
        runs=(),
        failures=tuple(entry.failures),
        score=None,
        valid=float(np.mean(known)) if known and len(known) == len(valid) else None,
        baseline=entry.baseline,
        curve=curve,
        views=replace(entry.views, positions=join_positions(entry.positions)),
    )
    if sample is None or judge is None:
        return contender
    low, high = score_interval(judge, sample.estimate) or sample.estimate.interval
    results = [_run_result(run, score, out) for run, score in zip(runs, sample.seeds.tolist(), strict=True)]
    others = judge.other_scores(entry.answers)
    score = Score(value=sample.estimate.value, low=max(0.0, low), high=high, others=others)
    return replace(contender, runs=tuple(results), score=score)


def join_positions(runs: Sequence[WindowLosses]) -> tuple[PositionPoint, ...]:
    """Loss by position, the mean over runs, with intervals over documents and seeds."""
    if not runs or not runs[0].bits_per_byte or any(run.documents != runs[0].documents for run in runs):
        return ()
    values, points = np.array([run.bits_per_byte for run in runs]), []  # (S, windows, bins)
    for k, n_bytes in enumerate(runs[0].n_bytes_before):
        counts = np.stack([values[:, :, k], np.ones(values.shape[:2])], axis=-1)
        found = take_sample(lambda summed: float(summed[0] / summed[1]), counts, runs[0].documents).estimate
        low, high = found.interval
        points.append(PositionPoint(n_bytes_before=n_bytes, bits_per_byte=found.value, low=low, high=high))
    return tuple(points)


def _run_result(run: FinishedRun, score: float, out: Path) -> RunResult:
    folder = run.folder.relative_to(out) if run.folder.is_relative_to(out) else run.folder
    spent = {name: run.spent(name) if run.lines else None for name in ("tokens", "flops", "seconds")}
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
