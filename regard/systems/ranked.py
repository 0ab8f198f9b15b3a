"""From outputs to a ranking: scores with intervals, who is better than whom, and what scores cost."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from regard.comparison.machine import hardware, versions
from regard.data.split import describe_skipped
from regard.score.bootstrap import Counts, PairedBootstrap, bootstrap_of
from regard.score.translation import MANY_ENDS, ChrfScore
from regard.systems.examples import examples_of
from regard.systems.finished import FinishedRun, watched_by_all
from regard.systems.judge import Judge, judge_of
from regard.systems.material import Material, digest
from regard.systems.reach import reached
from regard.systems.result import KIND, LOSS, SCHEMA, Duel, Setup, System, SystemsComparison, Watched
from regard.systems.seeds import group_names, mean_curve, widened
from regard.systems.words import headline

N_DRAWS = 1000


def compared(
    runs: Sequence[FinishedRun],
    materials: Sequence[Material],
    chosen: Sequence[int],
    outputs: Sequence[Sequence[str]],
    *,
    groups: Sequence[Sequence[int]],
    levels: Sequence[float],
    data: str,
    decoding: str,
    command: str,
) -> SystemsComparison:
    """Rank the runs by their outputs for the test items that were chosen; `data` and the rest say what was done.

    `groups` are the places of the runs of each system.
    """
    references = [materials[0].references[i] for i in chosen]
    judge = judge_of(runs[0].task, references, materials[0].has_tags)
    counts = [np.stack([judge.counts(outputs[place]) for place in group]) for group in groups]  # (S, n, k) each
    chrfs = [judge.chrf(lines) for lines in outputs]
    watched, notes = watched_by_all(runs)
    systems = [
        _system(name, [runs[i] for i in group], judge, counted, [chrfs[i] for i in group], watched)
        for name, group, counted in zip(group_names([run.name for run in runs], groups), groups, counts, strict=True)
    ]
    order = sorted(range(len(systems)), key=lambda i: -systems[i].score)
    duels = _duels(judge, systems, counts, order)
    setup = Setup(
        task=runs[0].task,
        metric=judge.name,
        signature=judge.signature,
        chrf_signature="" if chrfs[0] is None else chrfs[0].signature,
        watched=watched,
        data_hash=digest(text for given in references for text in given),
        n_tested=len(chosen),
        n_left_out=len(materials[0].sources) - len(chosen),
        decoding=decoding,
        n_draws=N_DRAWS,
        notes=(*notes, *_notes(runs, materials, references)),
        versions=versions(),
        hardware=hardware(),
        date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        data=data,
        command=command,
    )
    found = reached([system.curve for system in systems], levels, is_upwards=setup.is_watched_upwards)
    ranked = [systems[i] for i in order]
    return SystemsComparison(
        kind=KIND,
        schema=SCHEMA,
        headline=headline(ranked, duels, setup, found, systems),
        setup=setup,
        systems=tuple(systems),
        ranking=tuple(system.name for system in ranked),
        duels=tuple(duels),
        reached=found,
        examples=examples_of(materials[0], chosen, [outputs[group[0]] for group in groups]),
    )


def _system(
    name: str,
    runs: Sequence[FinishedRun],
    judge: Judge,
    counted: Counts,
    chrfs: Sequence[ChrfScore | None],
    watched: str,
) -> System:
    drawn, curves = _bootstrap(judge, counted, counted).first, [run.curve(watched) for run in runs]
    scores = tuple(judge.score(counts.sum(axis=0)) for counts in counted)
    low, high = widened(drawn, [scores])
    return System(
        name=name,
        runs=tuple(str(run.folder) for run in runs),
        scores=scores,
        about=runs[0].about(),
        config=_plain(runs[0].config.to_dict()),
        n_parameters=runs[0].facts.n_parameters,
        tokens=round(fmean(run.spent("tokens") for run in runs)),
        flops=fmean(run.spent("flops") for run in runs),
        seconds=fmean(run.spent("seconds") for run in runs),
        valid=_mean_or_none(_best(curve, watched) for curve in curves),
        score=drawn.score,
        low=low,
        high=high,
        chrf=_mean_or_none(None if chrf is None else chrf.score for chrf in chrfs),
        curve=mean_curve(curves),
    )


def _mean_or_none(values: Iterable[float | None]) -> float | None:
    """None where a run has none."""
    known = list(values)
    return None if None in known else fmean(value for value in known if value is not None)


def _notes(
    runs: Sequence[FinishedRun], materials: Sequence[Material], references: Sequence[Sequence[str]]
) -> list[str]:
    """What limits the comparison."""
    found = []
    if skipped := materials[0].skipped:
        found.append(f"Of the test data, {describe_skipped(skipped)}.")
    if len({material.watched for material in materials}) > 1:
        found.append("The runs were watched on different validation data: their curves do not compare with each other.")
    if len({material.sources for material in materials}) > 1:
        found.append(f"The systems read different sources of the same targets; shown are those of {runs[0].name}.")
    n_split = sum(given[0].rstrip().endswith(" .") for given in references)
    if runs[0].task == "translation" and n_split >= MANY_ENDS:
        found.append("The references are split into words already: this BLEU compares with no published score.")
    return found


def _best(curve: Sequence[Watched], watched: str) -> float | None:
    scores = [point.score for point in curve]
    return (min if watched == LOSS else max)(scores, default=None)


def _duels(judge: Judge, systems: Sequence[System], counts: Sequence[Counts], order: Sequence[int]) -> list[Duel]:
    """Each system but the best, against the next better one and against the best."""
    found = []
    for place, worse in enumerate(order[1:]):
        for better in dict.fromkeys((order[place], order[0])):
            test = _bootstrap(judge, counts[worse], counts[better])
            low, high = widened(test.difference, [systems[better].scores, systems[worse].scores])
            found.append(
                Duel(
                    better=systems[better].name,
                    worse=systems[worse].name,
                    difference=test.difference.score,
                    low=low,
                    high=high,
                    p=test.p,
                    wins=test.wins,
                    is_clear=test.is_clear and not low <= 0.0 <= high,
                )
            )
    return found


def _bootstrap(judge: Judge, first: Counts, second: Counts) -> PairedBootstrap:
    return bootstrap_of(first, second, judge.score, metric=judge.name, signature=judge.signature, n_draws=N_DRAWS)


def _plain(value: Any) -> Any:
    """Lists for tuples, as JSON gives them back."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
