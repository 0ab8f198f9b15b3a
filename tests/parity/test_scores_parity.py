"""Every score function against a float64 einsum over spelled-out pairs."""

import math

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.layers.scores import Score

EXACT = {"rtol": 0, "atol": 1e-13}
B, T, S, D, A = 3, 4, 5, 6, 7


def pair() -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(0)
    return (
        torch.randn(B, T, D, dtype=torch.float64, generator=draws),
        torch.randn(B, S, D, dtype=torch.float64, generator=draws),
    )


def test_dot_is_the_sum_of_products() -> None:
    q, k = pair()
    torch.testing.assert_close(Score("dot", D)(q, k), torch.einsum("btd,bsd->bts", q, k), **EXACT)


def test_scaled_dot_is_divided_by_the_root_of_the_width() -> None:
    q, k = pair()
    torch.testing.assert_close(Score("scaled-dot", D)(q, k), torch.einsum("btd,bsd->bts", q, k) / math.sqrt(D), **EXACT)


def test_bilinear_has_a_matrix_between_query_and_key() -> None:
    q, k = pair()
    score = Score("bilinear", D).double()
    torch.testing.assert_close(score(q, k), torch.einsum("btd,de,bse->bts", q, score.W, k), **EXACT)


def test_the_mlp_reads_query_and_key_side_by_side() -> None:
    q, k = pair()
    score = Score("mlp", D, A).double()
    W1 = torch.cat([score.from_q.weight, score.from_k.weight], dim=1)  # (A, 2D)
    pairs = torch.cat([q[:, :, None].expand(B, T, S, D), k[:, None].expand(B, T, S, D)], dim=-1)
    expected = torch.einsum("a,btsa->bts", score.w2[0], torch.einsum("ae,btse->btsa", W1, pairs).tanh())
    torch.testing.assert_close(score(q, k), expected, **EXACT)


@pytest.mark.parametrize("name", ["dot", "bilinear", "mlp", "scaled-dot"])
def test_every_score_has_a_gradient_for_query_and_key(name: str) -> None:
    q, k = (x.requires_grad_() for x in pair())
    assert torch.autograd.gradcheck(Score(name, D).double(), (q, k))


def test_an_unknown_score_is_told_what_there_is() -> None:
    with pytest.raises(RegardError, match=r"no score function 'bilinera'\. Did you mean 'bilinear'\? There are: dot, "):
        Score("bilinera", 4)
