"""A comparison of finished runs that nobody made, with names and texts that would break a careless page."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

from regard.systems.reach import reached
from regard.systems.result import KIND, SCHEMA, Duel, Example, Setup, System, SystemsComparison, Watched
from regard.systems.words import headline

HOSTILE = "<script>alert('x')</script>"


def watched(*scores: float, flops: float = 1e12) -> tuple[Watched, ...]:
    """An evaluation after each step of so many FLOPs and ten seconds."""
    return tuple(
        Watched(step=i, tokens=1000 * i, flops=flops * i, seconds=10.0 * i, score=score)
        for i, score in enumerate(scores, start=1)
    )


def system(name: str, score: float, curve: tuple[Watched, ...] = (), **changes: Any) -> System:
    found = System(
        name=name,
        runs=(f"runs/{name}",),
        scores=(score,),
        about="gru to gru",
        config={"seed": 0, "model": {"name": "seq2seq", "d_model": 16}},
        n_parameters=12_345,
        tokens=3000,
        flops=3e12,
        seconds=30.0,
        valid=max((point.score for point in curve), default=None),
        score=score,
        low=score - 2,
        high=score + 2,
        chrf=score + 20,
        curve=curve,
    )
    return dataclasses.replace(found, **changes)


def duel(better: str, worse: str, difference: float, p: float = 0.001) -> Duel:
    low, high = (difference - 1, difference + 1) if p < 0.05 else (-1.0, difference + 1)
    return Duel(
        better=better, worse=worse, difference=difference, low=low, high=high, p=p, wins=0.99, is_clear=p < 0.05
    )


def made_up_systems(n_more: int = 0, **setup: Any) -> SystemsComparison:
    """Three systems, best last in the order given, and as many more as are asked for."""
    systems = [
        system("plain", 12.0, watched(2, 8, 11, flops=1e12)),
        system(HOSTILE, 33.0, watched(9, 21, 32, flops=3e12)),
        system("transformer", 35.0, watched(5, 31, 36, flops=2e12)),
        *(system(f"further-system-{i}", 5.0 - i, watched(1, 2, 3)) for i in range(n_more)),
    ]
    ranked = sorted(systems, key=lambda s: -s.score)
    neighbours = [duel(a.name, b.name, a.score - b.score) for a, b in pairwise(ranked)]
    neighbours[0] = duel("transformer", HOSTILE, 2.0, p=0.2)
    duels = [*neighbours, *(duel(ranked[0].name, b.name, ranked[0].score - b.score) for b in ranked[2:])]
    measured = Setup(
        task="translation",
        metric="BLEU",
        signature="nrefs:1|tok:13a",
        chrf_signature="chrF2|nrefs:1",
        watched="BLEU",
        data="test.en, test.de",
        data_hash="0" * 64,
        n_tested=100,
        n_left_out=3,
        decoding="beam search of width 5",
        n_draws=1000,
        notes=(),
        versions={"regard": "1"},
        hardware="a machine",
        date="2026-01-01 10:00",
        command="regard compare runs/plain runs/transformer",
    )
    measured = dataclasses.replace(measured, **setup)
    found = reached([s.curve for s in systems], is_upwards=True)
    examples = (
        Example(
            number=7,
            source=f"A dog & {HOSTILE}",
            references=("Ein Hund läuft.",),
            outputs=("Ein Hund rennt.", HOSTILE, "", *["Hund"] * n_more),
        ),
    )
    return SystemsComparison(
        kind=KIND,
        schema=SCHEMA,
        headline=headline(ranked, duels, measured, found, systems),
        setup=measured,
        systems=tuple(systems),
        ranking=tuple(s.name for s in ranked),
        duels=tuple(duels),
        reached=found,
        examples=examples,
    )
