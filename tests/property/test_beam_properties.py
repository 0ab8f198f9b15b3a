"""Batched search against a plain one and against all texts there are."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from table_stepper import MayCome, TableStepper, every_text, plain_search
from torch import Tensor

from regard.decode.beam import Hypothesis, beam_search
from regard.decode.config import LENGTH_PENALTIES, BeamConfig, SamplingConfig
from regard.decode.generate import sample_texts
from regard.decode.highest import highest
from regard.decode.stepper import Ensemble

seeds = st.integers(0, 2**20)
penalties = st.sampled_from(LENGTH_PENALTIES)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


class Alternating:
    """Even and odd tokens take turns; which begins is the source's to say. The last ids are not its own."""

    def __init__(self, V: int) -> None:
        self.V = V

    def start(self, row: int) -> int:
        return row % 2

    def allowed(self, state: int) -> Tensor:
        return torch.arange(self.V) % 2 == state

    def step(self, state: int, token: int) -> int:
        assert token % 2 == state, "asked with a token that was not allowed"
        return 1 - state


def rules_of(config: BeamConfig, stop: int | None, first: int | None) -> MayCome:
    """What a config lets come next, said once more; `first`: the constraint's first parity."""

    def may_come(text: tuple[int, ...], token: int) -> bool:
        if first is not None and token % 2 != (first + len(text)) % 2:
            return False
        if token == stop and len(text) + 1 < config.min_length:
            return False
        n = config.no_repeat_ngram
        return n is None or not repeats((*text, token), n)

    return may_come


def repeats(text: tuple[int, ...], n: int) -> bool:
    grams = [text[i : i + n] for i in range(len(text) - n + 1)]
    return len(set(grams)) < len(grams)


def agrees(found: list[Hypothesis], expected: list[tuple[tuple[int, ...], float, float]]) -> None:
    assert [h.tokens for h in found] == [text for text, _, _ in expected]
    for hypothesis, (_, log_prob, score) in zip(found, expected, strict=True):
        assert abs(hypothesis.log_prob - log_prob) < 1e-10
        assert abs(hypothesis.score - score) < 1e-10


@settings(max_examples=150)
@given(
    seed=seeds,
    V=st.integers(2, 7),
    beam=st.integers(1, 6),
    n_best=st.none() | st.integers(1, 7),
    max_lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    penalty=penalties,
    alpha=alphas,
    stop=st.sampled_from([None, 0, 1]),
    decimals=st.sampled_from([None, None, 0]),
    p_impossible=st.sampled_from([0.0, 0.0, 0.3]),
    grows=st.booleans(),
    is_ahead=st.booleans(),
)
def test_a_batch_finds_what_a_plain_search_finds_for_each_source(
    seed: int,
    V: int,
    beam: int,
    n_best: int | None,
    max_lengths: list[int],
    penalty: str,
    alpha: float,
    stop: int | None,
    decimals: int | None,
    p_impossible: float,
    grows: bool,
    is_ahead: bool,
) -> None:
    stepper = TableStepper(V, seed, decimals, p_impossible, grows)
    config = BeamConfig(beam=beam, n_best=n_best, length_penalty=penalty, alpha=alpha)
    sources = list(range(len(max_lengths)))
    found = beam_search(stepper, *stepper.start(sources), config, max_lengths=max_lengths, stop=stop, is_ahead=is_ahead)
    for source, hypotheses in zip(sources, found, strict=True):
        expected = plain_search(stepper, source, config, max_lengths[source], stop, rules_of(config, stop, None))
        possible = [h for h in hypotheses if h.log_prob > -math.inf]
        agrees(possible, expected)
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)
        assert all(better.score >= worse.score for better, worse in pairwise(hypotheses))
        assert hypotheses, "one text at least, impossible or not"


@settings(max_examples=60)
@given(
    seed=seeds,
    V=st.integers(2, 4),
    penalty=penalties,
    alpha=alphas,
    n_best=st.none() | st.integers(1, 5),
    min_length=st.integers(1, 3),
    no_repeat_ngram=st.sampled_from([None, 2, 3]),
    is_constrained=st.booleans(),
)
def test_an_unpruned_beam_is_exhaustive(
    seed: int,
    V: int,
    penalty: str,
    alpha: float,
    n_best: int | None,
    min_length: int,
    no_repeat_ngram: int | None,
    is_constrained: bool,
) -> None:
    L, stepper = 4, TableStepper(V, seed)
    config = BeamConfig(
        beam=V**L, n_best=n_best, length_penalty=penalty, alpha=alpha, min_length=min_length,
        no_repeat_ngram=no_repeat_ngram,
    )  # fmt: skip
    constraint = Alternating(V) if is_constrained else None
    found = beam_search(stepper, *stepper.start([0, 1]), config, max_lengths=[L, L - 1], stop=0, constraint=constraint)
    for source, hypotheses in enumerate(found):
        may_come = rules_of(config, 0, source if is_constrained else None)
        expected = every_text(stepper, source, config, L - source, 0, may_come)
        possible = [h for h in hypotheses if h.log_prob > -math.inf]
        agrees(possible, expected[:n_best])


@settings(max_examples=60)
@given(
    seed=seeds,
    V=st.integers(4, 9),
    beam=st.integers(1, 4),
    min_length=st.integers(1, 6),
    no_repeat_ngram=st.sampled_from([None, 1, 2, 3]),
    is_constrained=st.booleans(),
)
def test_guards_and_constraint_are_those_of_a_plain_search(
    seed: int, V: int, beam: int, min_length: int, no_repeat_ngram: int | None, is_constrained: bool
) -> None:
    stepper, limits = TableStepper(V, seed), [8, 5, 6]
    config = BeamConfig(beam=beam, n_best=beam, min_length=min_length, no_repeat_ngram=no_repeat_ngram)
    constraint = Alternating(V) if is_constrained else None
    found = beam_search(stepper, *stepper.start([0, 1, 2]), config, max_lengths=limits, stop=0, constraint=constraint)
    for source, hypotheses in enumerate(found):
        first = source % 2 if is_constrained else None
        expected = plain_search(stepper, source, config, limits[source], 0, rules_of(config, 0, first))
        agrees([h for h in hypotheses if h.log_prob > -math.inf], expected)


@settings(max_examples=60)
@given(
    seed=seeds,
    V=st.integers(2, 9),
    stop=st.sampled_from([None, 0, 1]),
    max_lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    decimals=st.sampled_from([None, 0]),
    p_impossible=st.sampled_from([0.0, 0.9]),
    min_length=st.integers(1, 4),
    no_repeat_ngram=st.sampled_from([None, 2]),
    is_constrained=st.booleans(),
)
def test_a_beam_of_one_is_greedy(
    seed: int,
    V: int,
    stop: int | None,
    max_lengths: list[int],
    decimals: int | None,
    p_impossible: float,
    min_length: int,
    no_repeat_ngram: int | None,
    is_constrained: bool,
) -> None:
    stepper = TableStepper(V, seed, decimals, p_impossible)
    sources, constraint = list(range(len(max_lengths))), Alternating(V) if is_constrained else None
    config = BeamConfig(beam=1, min_length=min_length, no_repeat_ngram=no_repeat_ngram)
    found = beam_search(
        stepper, *stepper.start(sources), config, max_lengths=max_lengths, stop=stop, constraint=constraint
    )
    texts = sample_texts(
        stepper, *stepper.start(sources), SamplingConfig(temperature=0.0), max_lengths=max_lengths, stop=stop,
        min_length=min_length, no_repeat_ngram=no_repeat_ngram, constraint=constraint,
    )  # fmt: skip
    assert [list(hypotheses[0].tokens) for hypotheses in found] == [text.tokens for text in texts]
    for (best, *_), text in zip(found, texts, strict=True):
        assert text.log_prob == pytest.approx(best.log_prob, rel=0, abs=1e-9)
    assert all(len(text.tokens) <= longest for text, longest in zip(texts, max_lengths, strict=True))


@settings(max_examples=40)
@given(
    seed=seeds,
    draw=seeds,
    temperature=st.sampled_from([0.0, 0.7, 1.0]),
    top_k=st.none() | st.integers(1, 4),
    p_impossible=st.sampled_from([0.0, 0.9]),
)
def test_what_a_source_draws_does_not_depend_on_those_beside_it(
    seed: int, draw: int, temperature: float, top_k: int | None, p_impossible: float
) -> None:
    stepper, limits = TableStepper(6, seed, p_impossible=p_impossible), [9, 1, 5, 9, 3]
    config = SamplingConfig(temperature=temperature, top_k=top_k, seed=draw)
    together = sample_texts(stepper, *stepper.start([4, 5, 6, 7, 8]), config, max_lengths=limits, stop=0)
    for n in (1, 2, 3):
        fewer = list(range(4, 4 + n))
        assert sample_texts(stepper, *stepper.start(fewer), config, max_lengths=limits[:n], stop=0) == together[:n]
    for (text, _), longest in zip(together, limits, strict=True):
        assert 0 not in text[:-1]
        assert max(text) < 6
        assert text[-1] == 0 or len(text) == longest


@settings(max_examples=40)
@given(seed=seeds, draw=seeds)
def test_sampling_obeys_the_constraint(seed: int, draw: int) -> None:
    stepper = TableStepper(5, seed, p_impossible=0.8, grows=True)  # often nothing that is allowed is possible
    texts = sample_texts(
        stepper, *stepper.start([0, 1]), SamplingConfig(seed=draw), max_lengths=6, stop=0, constraint=Alternating(5)
    )
    for source, (text, _) in enumerate(texts):
        assert all(token < 5 and token % 2 == (source + i) % 2 for i, token in enumerate(text))


@settings(max_examples=30)
@given(seed=seeds, beam=st.integers(1, 4))
def test_an_ensemble_of_one_is_itself_and_of_twins_too(seed: int, beam: int) -> None:
    stepper, config = TableStepper(5, seed), BeamConfig(beam=beam, n_best=beam)
    alone = beam_search(stepper, *stepper.start([0, 1]), config, max_lengths=6, stop=0)
    for n in (1, 2):
        many = Ensemble([stepper] * n)
        log_probs, state = many.start([stepper.start([0, 1])] * n)
        found = beam_search(many, log_probs, state, config, max_lengths=6, stop=0)
        for ours, expected in zip(found, alone, strict=True):
            agrees(ours, [(h.tokens, h.log_prob, h.score) for h in expected])


@pytest.mark.parametrize("V", [5, 300, 1000, 1027])
@given(
    seed=seeds, k=st.integers(1, 5), n_values=st.sampled_from([1, 2, 3, 50, 10**6]), p=st.sampled_from([0.0, 0.9, 1])
)
def test_the_highest_are_the_first_of_a_stable_sort(V: int, seed: int, k: int, n_values: int, p: float) -> None:
    draws = torch.Generator().manual_seed(seed)
    log_probs = -torch.randint(0, n_values, (4, V), generator=draws).float()
    log_probs[torch.rand(4, V, generator=draws) < p] = -math.inf
    values, ids = highest(log_probs, k)
    expected, order = log_probs.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(values, expected[:, :k])
    is_possible = (values > -math.inf) | (values[:, :1] == -math.inf)
    assert torch.equal(ids[is_possible], order[:, :k][is_possible])
