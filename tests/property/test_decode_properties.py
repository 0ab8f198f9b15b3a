"""Search and sampling over models small enough to try every text."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.decode.beam import search
from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.decode.sampling import filter_log_probs
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.models.next_token import NextToken
from regard.models.table import MODELS, models_for

Tiny = Callable[..., LanguageModel]
V = 4
EACH = pytest.mark.parametrize("name", models_for("language-model"))
seeds = st.integers(0, 2**16)


def small(tiny_model: Tiny, name: str, seed: int) -> NextToken:
    if not MODELS[name].is_counted:
        return as_next_token(tiny_model(name, seed, vocab_size=V))
    stream = np.random.default_rng(seed).integers(0, V, 60)
    return as_next_token(NgramModel.fit(NgramConfig(order=3), stream, V, None))


@EACH
@settings(max_examples=10)
@given(seed=seeds, prompt=st.lists(st.integers(0, V - 1), max_size=5))
def test_a_beam_of_one_is_greedy(tiny_model: Tiny, name: str, seed: int, prompt: list[int]) -> None:
    model, prompts = small(tiny_model, name, seed), torch.tensor([prompt], dtype=torch.long)
    for stop in (None, 0):
        greedy = generate_all(model, prompts, SamplingConfig(temperature=0.0, max_tokens=9), stop=stop)
        assert generate_all(model, prompts, SamplingConfig(beam=1, max_tokens=9), stop=stop) == greedy


@EACH
@settings(max_examples=10)
@given(seed=seeds, prompt=st.lists(st.integers(0, V - 1), max_size=3), alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_an_unpruned_beam_is_exhaustive(
    tiny_model: Tiny, name: str, seed: int, prompt: list[int], alpha: float
) -> None:
    model, L = small(tiny_model, name, seed), 3
    found = search(model, prompt, beam=V**L, max_tokens=L, stop=0, alpha=alpha)
    scores: dict[tuple[int, ...], float] = {}
    for n in range(1, L + 1):
        every = itertools.product(range(V), repeat=n)
        texts = [text for text in every if 0 not in text[:-1] and (text[-1] == 0 or n == L)]
        nats = model.nats_of_windows(np.array([[0, *prompt, *text] for text in texts]))[:, len(prompt) :].sum(axis=1)
        scores |= {text: -cost / n**alpha for text, cost in zip(texts, nats, strict=True)}
    assert {h.tokens for h in found} == set(scores)
    assert all(abs(h.score - scores[h.tokens]) < 1e-10 for h in found)
    assert abs(found[0].score - max(scores.values())) < 1e-10
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@given(
    seed=seeds,
    temperature=st.floats(0.05, 5.0),
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.floats(0.0, 1.0),
    min_p=st.none() | st.floats(0.0, 1.0),
)
def test_what_is_sampled_from_is_a_distribution_that_keeps_the_best_token(
    seed: int, temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> None:
    draws = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(3, 9, dtype=torch.float64, generator=draws).mul(3).log_softmax(-1)
    config = SamplingConfig(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    probs = filter_log_probs(log_probs, config).exp()
    torch.testing.assert_close(probs.sum(-1), torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-12)
    assert torch.equal(probs.argmax(-1), log_probs.argmax(-1))
    if top_k is not None:
        assert ((probs > 0).sum(-1) <= top_k).all()
