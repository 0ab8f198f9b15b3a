"""A comparison of runs in plain language, computed from its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from regard.comparison.budget import duration_text
from regard.comparison.words import p_text
from regard.systems.result import Duel, Reached, Setup, System, SystemsComparison

LEAST_FACTOR = 1.25
"""Costs that lie closer are not worth a sentence."""


def headline(
    ranked: Sequence[System], duels: Sequence[Duel], setup: Setup, found: Sequence[Reached], systems: Sequence[System]
) -> tuple[str, ...]:
    """Who is best and by how much; which neighbours are not told apart; who gets there for less."""
    best, second = ranked[:2]
    lead = _duel(duels, best, second)
    start = f"{best.name} is best at {setup.metric} {best.score:.1f}"
    if lead.difference == 0:
        first = f"{best.name} and {second.name} are level at {setup.metric} {best.score:.1f}."
    elif lead.is_clear:
        first = (
            f"{start}, {lead.difference:.1f} ahead of {second.name} (95% interval {lead.low:.1f} to {lead.high:.1f})."
        )
    else:
        first = f"{start}, but its lead of {lead.difference:.1f} over {second.name} is not settled ({p_text(lead.p)})."
    sentences = [first]
    if chains := _open_chains(ranked[1:], duels):
        told = "; ".join(", ".join(chain[:-1]) + f" and {chain[-1]}" for chain in chains)
        each = ", each from the next" if max(map(len, chains)) > 2 else ""
        sentences.append(f"Not told apart by these {setup.n_tested:,} test items{each}: {told}.")
    if sentence := _cheaper(setup, found, systems):
        sentences.append(sentence)
    return tuple(sentences)


def _open_chains(ranked: Sequence[System], duels: Sequence[Duel]) -> list[list[str]]:
    """Neighbours whose order is not settled; those that follow each other make one chain."""
    chains: list[list[str]] = []
    for better, worse in pairwise(ranked):
        if _duel(duels, better, worse).is_clear:
            continue
        if chains and chains[-1][-1] == better.name:
            chains[-1].append(worse.name)
        else:
            chains.append([better.name, worse.name])
    return chains


def _duel(duels: Sequence[Duel], better: System, worse: System) -> Duel:
    return next(d for d in duels if (d.better, d.worse) == (better.name, worse.name))


def level_text(setup: Setup, level: float) -> str:
    """A validation score as it is said.

    >>> from types import SimpleNamespace
    >>> level_text(SimpleNamespace(watched="BLEU", is_watched_upwards=True), 30.0)
    'BLEU 30'
    >>> level_text(SimpleNamespace(watched="bits per byte", is_watched_upwards=False), 0.75)
    '0.75 bits per byte'
    """
    return f"{setup.watched} {level:g}" if setup.is_watched_upwards else f"{level:g} {setup.watched}"


def flops_text(flops: float) -> str:
    """
    >>> flops_text(3.14e15), flops_text(9e7), flops_text(0.0)
    ('3.1e15', '9.0e7', '0')
    """
    return f"{flops:.1e}".replace("e+0", "e").replace("e+", "e") if flops else "0"


def seeds_text(comparison: SystemsComparison) -> str:
    """What the intervals hold of luck with seeds."""
    n_runs = [len(system.runs) for system in comparison.systems]
    if max(n_runs) == 1:
        return "Each system is one run: what another seed would give is not in it."
    text = "Of several runs with different seeds scores are means, and intervals hold what another seed would give."
    return text if min(n_runs) > 1 else text + " Of a single run they do not."


def cost_text(flops: float | None, seconds: float | None, between: str, has_time: bool = True) -> str:
    """What a score cost; – where it was never reached."""
    if flops is None or seconds is None:
        return "–"
    return flops_text(flops) + (between + duration_text(seconds) if has_time else "")


def _cheaper(setup: Setup, found: Sequence[Reached], systems: Sequence[System]) -> str:
    """Of the hardest score that at least two reached: who needed least, and how much more the next one did."""
    for row in reversed(found):
        costs = sorted((flops, system.name) for flops, system in zip(row.flops, systems, strict=True) if flops)
        if len(costs) < 2:
            continue
        (least, name), (more, other) = costs[:2]
        if more < LEAST_FACTOR * least:
            return ""
        what = level_text(setup, row.level)
        return (
            f"To {what} on the validation data, {name} needs {flops_text(least)} training FLOPs, {other} "
            f"{more / least:.1f} times as many."
        )
    return ""
