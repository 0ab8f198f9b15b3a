"""The worked examples of attention, by the score functions that recurrent models use."""

import math

import torch
from torch import Tensor

from regard.layers.scores import Score

A, B = [1.0, 0.0], [0.0, 1.0]
AABA = torch.tensor([[A, A, B, A]], dtype=torch.float64)


def query(*values: float) -> Tensor:
    return torch.tensor([[values]], dtype=torch.float64)


def test_a_query_for_b_scores_one_at_the_b_and_nothing_elsewhere() -> None:
    scores = Score("dot", 2)(query(0.0, 1.0), AABA)
    assert scores.tolist() == [[[0.0, 0.0, 1.0, 0.0]]]
    weights = (scores * math.log(3)).softmax(dim=-1)  # e taken as 3
    torch.testing.assert_close(weights, query(1 / 6, 1 / 6, 1 / 2, 1 / 6), rtol=0, atol=1e-15)
    torch.testing.assert_close(weights @ AABA, query(1 / 2, 1 / 2), rtol=0, atol=1e-15)


def test_a_ten_times_longer_query_puts_nearly_all_weight_on_b() -> None:
    weights = (Score("dot", 2)(query(0.0, 10.0), AABA) * math.log(3)).softmax(dim=-1)
    torch.testing.assert_close(weights, query(1.0, 1.0, 3.0**10, 1.0) / (3.0**10 + 3), rtol=0, atol=1e-15)


def test_dot_products_of_width_64_are_divided_by_8() -> None:
    q = torch.ones(1, 1, 64, dtype=torch.float64)
    k = torch.tensor([112.0, 96.0, 16.0, 8.0], dtype=torch.float64)[None, :, None].expand(1, 4, 64) / 64
    scores = Score("scaled-dot", 64)(q, k)
    assert scores.tolist() == [[[14.0, 12.0, 2.0, 1.0]]]
    assert [round(w, 3) for w in scores.softmax(dim=-1)[0, 0].tolist()] == [0.881, 0.119, 0.000, 0.000]


def test_a_bilinear_score_can_look_for_another_thing_than_the_query() -> None:
    score = Score("bilinear", 2).double()
    with torch.no_grad():
        score.W.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))  # A looks for B, B for A
    assert score(query(*A), AABA).tolist() == [[[0.0, 0.0, 1.0, 0.0]]]


def test_the_mlp_score_is_the_tanh_of_a_sum() -> None:
    score = Score("mlp", 2, 1).double()
    with torch.no_grad():
        score.from_q.weight.copy_(torch.tensor([[0.0, 2.0]]))
        score.from_k.weight.copy_(torch.tensor([[-1.0, 1.0]]))
        score.w2.fill_(5.0)
    at_a, at_b = 5 * math.tanh(2 - 1), 5 * math.tanh(2 + 1)
    torch.testing.assert_close(score(query(0.0, 1.0), AABA), query(at_a, at_a, at_b, at_a), rtol=0, atol=1e-15)
