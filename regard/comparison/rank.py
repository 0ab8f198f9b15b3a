"""From measurements to a ranking: scores with intervals, the order, the tests between neighbours, the headline."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from regard.comparison.result import SCHEMA, Comparison, ContenderResult, Neighbours, Score, Setup
from regard.comparison.statistics import Array, bits_per_byte, interval, paired
from regard.comparison.words import headline
from regard.score.evaluate import finite_perplexity


def ranked_comparison(setup: Setup, contenders: Sequence[ContenderResult]) -> Comparison:
    """Score every contender that has measurements, and put them in order.

    Contenders whose tokenizer loses text are ranked below all others: their bits per byte leave something out.
    """
    n_bytes = np.array(setup.block_bytes, dtype=np.float64)
    scored = tuple(replace(c, score=score_of(c, n_bytes)) for c in contenders)
    rows = [(c, c.score) for c in scored if c.score is not None]
    ordered = [c for c, _ in sorted(rows, key=lambda row: (not row[0].is_comparable, row[1].bits_per_byte))]
    neighbours = tuple(
        _tested(better, worse, n_bytes)
        for better, worse in itertools.pairwise(ordered)
        if better.is_comparable == worse.is_comparable
    )
    failed = [c.name for c in scored if c.score is None]
    return Comparison(
        schema=SCHEMA,
        headline=headline(ordered, neighbours, failed),
        setup=setup,
        contenders=scored,
        ranking=tuple(c.name for c in ordered),
        neighbours=neighbours,
    )


def score_of(contender: ContenderResult, n_bytes: Array) -> Score | None:
    """Means over seeds; perplexity per token is the exponential of the mean nats per token."""
    if not contender.seeds:
        return None
    nats = nats_of(contender)
    low, high = interval(nats, n_bytes)
    seeds = contender.seeds
    nats_per_token = fmean(sum(s.block_nats) / s.n_test_tokens for s in seeds)
    return Score(
        bits_per_byte=bits_per_byte(nats, n_bytes),
        low=low,
        high=high,
        perplexity_per_token=finite_perplexity(nats_per_token),
        train_tokens=fmean(s.train_tokens for s in seeds),
        flops=fmean(s.flops for s in seeds),
        seconds=fmean(s.seconds for s in seeds),
        tokens_per_second=fmean(s.train_tokens / max(s.seconds, 1e-9) for s in seeds),
    )


def nats_of(contender: ContenderResult) -> Array:
    """(seeds, blocks)."""
    return np.array([s.block_nats for s in contender.seeds], dtype=np.float64)


def _tested(better: ContenderResult, worse: ContenderResult, n_bytes: Array) -> Neighbours:
    are_counted = (better.is_counted, worse.is_counted)
    found = paired(nats_of(better), nats_of(worse), n_bytes, are_counted=are_counted)
    return Neighbours(
        better=better.name,
        worse=worse.name,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        is_clear=found.is_clear,
    )
