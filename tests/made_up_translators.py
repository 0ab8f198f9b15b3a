"""A comparison of finished runs that nobody made, with names and texts that would break a careless page."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from typing import Any

from regard.compare.cost_to_score import cost_to_score
from regard.compare.headline import write_headline
from regard.compare.result import (
    SCHEMA,
    Comparison,
    Contender,
    CurvePoint,
    Example,
    PairResult,
    RunResult,
    Score,
    Setup,
)
from regard.lens.views import Views
from regard.score.figures import p_text

HOSTILE = "<script>alert('x')</script>"


def watched(*scores: float, flops: float = 1e12) -> tuple[CurvePoint, ...]:
    """An evaluation after each step of so many FLOPs and ten seconds."""
    return tuple(
        CurvePoint(step=i, tokens=1000 * i, flops=flops * i, seconds=10.0 * i, score=score, low=score, high=score)
        for i, score in enumerate(scores, start=1)
    )


def translator(name: str, score: float, curve: tuple[CurvePoint, ...] = (), **changes: Any) -> Contender:
    found = Contender(
        name=name,
        model="seq2seq",
        about="gru to gru",
        config={"model": {"name": "seq2seq", "d_model": 16}},
        n_parameters=12_345,
        n_non_embedding=9_876,
        size_note="",
        lossy="",
        has_seeds=True,
        runs=(RunResult(run=f"runs/{name}", seed=0, score=score, tokens=3000, flops=3e12, seconds=30.0),),
        failures=(),
        score=Score(value=score, low=score - 2, high=score + 2, others={"chrF": score + 20}),
        valid=max((point.score for point in curve), default=None),
        baseline=None,
        curve=curve,
        views=Views(),
    )
    return dataclasses.replace(found, **changes)


def pair(better: str, worse: str, difference: float, p: float = 0.001) -> PairResult:
    low, high = (difference - 1, difference + 1) if p < 0.05 else (-1.0, difference + 1)
    return PairResult(
        better=better, worse=worse, difference=difference, relative=difference / 30, low=low, high=high, p=p, p_holm=p,
        n_effective=100.0, is_settled=p < 0.05, why="" if p < 0.05 else p_text(p),
    )  # fmt: skip


SETUP = Setup(
    task="translation",
    items="sentences",
    metric="BLEU",
    is_higher_better=True,
    signature="nrefs:1|tok:13a",
    other_signatures={"chrF": "chrF2|nrefs:1"},
    watched="BLEU",
    is_watched_upwards=True,
    data="test.en, test.de",
    data_hash="0" * 32,
    n_tested=100,
    n_documents=100,
    n_left_out=3,
    decoding="beam search of width 5",
    interval="95%, by Student's t over 100 sentences (jackknife)",
    test="two-sided, by Student's t over 100 sentences; settled means p < 0.05",
    training=None,
    passage="",
    prompt="",
    sampling="",
    notes=(),
    versions={"regard": "1"},
    hardware="a machine",
    date="2026-01-01 10:00",
    command="regard compare runs/plain runs/transformer",
)


def made_up_translators(n_more: int = 0, **setup: Any) -> Comparison:
    """Three contenders, best last in the order given, and as many more as are asked for."""
    contenders = [
        translator("plain", 12.0, watched(2, 8, 11, flops=1e12)),
        translator(HOSTILE, 33.0, watched(9, 21, 32, flops=3e12)),
        translator("transformer", 35.0, watched(5, 31, 36, flops=2e12)),
        *(translator(f"further-system-{i}", 5.0 - i, watched(1, 2, 3)) for i in range(n_more)),
    ]
    scores = {c.name: c.score.value for c in contenders if c.score is not None}
    ranked = sorted(contenders, key=lambda c: -scores[c.name])
    pairs = [pair(a.name, b.name, scores[a.name] - scores[b.name]) for a, b in combinations(ranked, 2)]
    pairs[0] = pair("transformer", HOSTILE, 2.0, p=0.2)
    measured = dataclasses.replace(SETUP, **setup)
    costs = cost_to_score([c.curve for c in contenders], is_upwards=True)
    examples = (
        Example(
            number=7,
            source=f"A dog & {HOSTILE}",
            references=("Ein Hund läuft.",),
            outputs=("Ein Hund rennt.", HOSTILE, "", *["Hund"] * n_more),
        ),
    )
    return Comparison(
        schema=SCHEMA,
        headline=write_headline(contenders, ranked, pairs, costs, measured),
        setup=measured,
        contenders=tuple(contenders),
        ranking=tuple(c.name for c in ranked),
        pairs=tuple(pairs),
        warnings=(),
        power="",
        costs=costs,
        examples=examples,
    )
