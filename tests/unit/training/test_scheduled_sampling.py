"""Scheduled sampling: its decays by hand, and its two ends, which are teacher forcing and free running."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_pairs import GRID, tiny_pair_model, tiny_prepared, tiny_task
from torch import Tensor

from regard.mixers.mixer import select_positions
from regard.models.seq2seq import Seq2Seq
from regard.training.scheduled_sampling import own_words, share_of_true_words, steepness, tell_share
from regard.training.teaching_config import DECAYS, TeachingConfig

CPU = torch.device("cpu")


def share(decay: str, index: int, n_half: int, p_lowest: float = 0.0) -> float:
    return share_of_true_words(
        TeachingConfig(mode="scheduled", decay=decay, n_half=n_half, p_lowest=p_lowest), index
    )  # fmt: skip


def test_the_linear_decay_by_hand() -> None:
    assert [share("linear", i, 10) for i in (0, 5, 10, 15, 20, 30)] == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]


def test_the_exponential_decay_by_hand() -> None:
    assert [share("exponential", i, 10) for i in (0, 10, 20, 30)] == [1.0, 0.5, 0.25, 0.125]


def test_the_inverse_sigmoid_decay_by_hand() -> None:
    """k ln k = 10 has k = 5.7289...; ε(0) = k / (k + 1), and at i = k ln k it is a half."""
    k = steepness(10)
    assert abs(k * math.log(k) - 10) < 1e-10
    assert abs(share("inverse-sigmoid", 0, 10) - k / (k + 1)) < 1e-12
    assert abs(share("inverse-sigmoid", 10, 10) - 0.5) < 1e-12
    assert abs(share("inverse-sigmoid", 20, 10) - k / (k + math.exp(20 / k))) < 1e-12
    assert share("inverse-sigmoid", 10**9, 10) < 1e-300  # far beyond, exp would be no number


@given(st.sampled_from(DECAYS), st.integers(1, 10**6), st.integers(0, 10**7), st.integers(0, 10**6))
def test_every_decay_falls_and_is_a_half_after_n_half(decay: str, n_half: int, index: int, more: int) -> None:
    assert abs(share(decay, n_half, n_half) - 0.5) < 1e-9
    assert 0 <= share(decay, index + more, n_half) <= share(decay, index, n_half) <= 1


def test_the_share_never_falls_below_the_lowest() -> None:
    assert [share("linear", i, 10, p_lowest=0.4) for i in (0, 10, 15, 10**6)] == [1.0, 0.5, 0.4, 0.4]


def test_the_other_modes_do_not_change() -> None:
    for index in (0, 10**6):
        assert share_of_true_words(TeachingConfig(mode="teacher"), index) == 1
        assert share_of_true_words(TeachingConfig(mode="free"), index) == 0


def test_words_are_decided_one_by_one_and_never_the_first() -> None:
    torch.manual_seed(0)
    is_own = own_words(torch.full((200,), 0.25), 101)
    assert not is_own[:, 0].any()
    rest = is_own[:, 1:].float()
    # 20,000 draws of 3/4: ±0.012 is four standard deviations; rows and columns have both kinds in them.
    assert abs(rest.mean().item() - 0.75) < 0.012
    assert rest.mean(dim=0).min() > 0
    assert rest.mean(dim=0).max() < 1
    assert rest.mean(dim=1).min() > 0
    assert rest.mean(dim=1).max() < 1


def test_at_the_ends_all_or_none_are_own() -> None:
    assert not own_words(torch.ones(50), 20).any()
    assert own_words(torch.zeros(50), 20)[:, 1:].all()


def gradients(model: Seq2Seq, loss: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def taught(model: Seq2Seq, prepared: Any, index: int = 0, **teaching: Any) -> tuple[Tensor, dict[str, Tensor]]:
    objective = tiny_task(model, prepared, max_tokens=1000, **teaching)
    tensors = objective.at(0).tensors[: 6 if model.copies else 5]
    share = tell_share(objective.teaching, index, len(tensors[0]))
    loss = objective.loss(model, objective.body(model), (*tensors, *share), None).goal
    return loss.detach(), gradients(model, loss)


def check_same(a: tuple[Tensor, dict[str, Tensor]], b: tuple[Tensor, dict[str, Tensor]]) -> None:
    assert abs(a[0] - b[0]) < 1e-10 * b[0]
    assert a[1].keys() == b[1].keys()
    for name in a[1]:
        torch.testing.assert_close(a[1][name], b[1][name], rtol=0, atol=1e-10)


VARIANTS = pytest.mark.parametrize(
    "variant", ["lstm to gru", "rnn to lstm, no attention", "transformer to transformer", "lstm that copies"]
)


@VARIANTS
def test_at_share_one_it_is_teacher_forcing(variant: str) -> None:
    """By the steps of the decoder, which a share just below one takes; no word is its own but with chance 1e-12."""
    prepared = tiny_prepared()
    model = tiny_pair_model(prepared, **GRID[variant][1]).double()
    almost = {"mode": "scheduled", "decay": "exponential", "n_half": 10**12}
    assert share("exponential", 1, 10**12) < 1
    check_same(taught(model, prepared, index=1, **almost), taught(model, prepared, mode="teacher"))


@VARIANTS
def test_at_share_zero_it_is_free_running(variant: str) -> None:
    """Held to a decoder that is fed its own words one by one, with gradients through every step of its state."""
    prepared = tiny_prepared()
    model = tiny_pair_model(prepared, **GRID[variant][1]).double()
    source, source_mask, inputs, targets, mask, *rest = tiny_task(model, prepared, max_tokens=1000).at(0).tensors
    encoded = model.encode(source, source_mask, rest[0] if rest else None)
    state, token, nats = (
        model.target.start(encoded, inputs.shape[1]),
        inputs[:, :1],
        torch.zeros((), dtype=torch.float64),
    )
    for t in range(inputs.shape[1]):
        h, state = model.target.hidden(token, encoded, state)
        nats = nats + model.target.goal_of(h, targets[:, t : t + 1], mask[:, t : t + 1])[1]
        token = model.target.log_probs(select_positions(h, slice(-1, None))).argmax(dim=-1, keepdim=True)
    plain = nats.detach(), gradients(model, nats)
    check_same(taught(model, prepared, mode="free", smoothing=0.0), plain)
    late = {"mode": "scheduled", "decay": "linear", "n_half": 1}
    check_same(taught(model, prepared, index=2, smoothing=0.0, **late), plain)
    assert abs(plain[0] - taught(model, prepared, mode="teacher", smoothing=0.0)[0]) > 1e-3
