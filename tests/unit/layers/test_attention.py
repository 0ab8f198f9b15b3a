"""The worked examples that every lecture on attention shows, and one head by hand."""

import math

import pytest
import torch
from torch import Tensor

from regard.kernels.causal_attention import causal_mask
from regard.layers.attention import MultiHeadAttention, attention_weights
from regard.layers.bilinear_heads import BilinearHeads
from regard.layers.taps import Taps
from regard.mixers.attention import AttentionBlock
from regard.mixers.config import TransformerConfig
from regard.mixers.transformer import TransformerBlock

A, B = [1.0, 0.0], [0.0, 1.0]
BASE_3 = math.log(3)  # softmax to the base 3 is softmax of scores times ln 3


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def close(given: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-15)


def test_a_query_for_b_finds_the_one_b_among_a_a_b_a() -> None:
    tokens = rows(A, A, B, A)
    weights = attention_weights(rows([0.0, 1.0]), tokens, scale=BASE_3)
    close(weights, rows([1 / 6, 1 / 6, 1 / 2, 1 / 6]))
    close(weights @ tokens, rows([1 / 2, 1 / 2]))
    close(tokens.mean(dim=0), torch.tensor([3 / 4, 1 / 4], dtype=torch.float64))


def test_a_ten_times_longer_query_puts_nearly_all_weight_on_b() -> None:
    weights = attention_weights(rows([0.0, 10.0]), rows(A, A, B, A), scale=BASE_3)
    close(weights, rows([1.0, 1.0, 3.0**10, 1.0]) / (3.0**10 + 3))


def of_scores(*scores: float) -> Tensor:
    """Weights of a query and keys of width 64 whose dot products are `scores`."""
    q = torch.ones(1, 64, dtype=torch.float64)
    k = torch.tensor(scores, dtype=torch.float64)[:, None] / 64 * torch.ones(64, dtype=torch.float64)
    return attention_weights(q, k)[0]


def test_scores_over_sqrt_64_give_the_weights_worked_by_hand() -> None:
    first = of_scores(112, 96, 16, 8)  # over 8: 14, 12, 2, 1
    assert [round(w, 3) for w in first.tolist()] == [0.881, 0.119, 0.000, 0.000]
    assert [round(w, 3) for w in of_scores(92, 124, 22, 8).tolist()] == [0.018, 0.982, 0.000, 0.000]
    assert math.isclose(first[0].item(), 1 / (1 + math.exp(-2) + math.exp(-12) + math.exp(-13)), abs_tol=1e-15)


def test_queries_are_the_last_positions_and_see_themselves_and_their_past() -> None:
    assert causal_mask(2, 4, torch.device("cpu")).tolist() == [[True, True, True, False], [True, True, True, True]]


def test_one_head_with_unit_matrices_is_attention_of_the_tokens_to_themselves() -> None:
    layer = MultiHeadAttention(2, 1).double()
    with torch.no_grad():
        layer.qkv.weight.copy_(torch.eye(2).repeat(3, 1))
        layer.qkv.bias.zero_()
        layer.out.weight.copy_(torch.eye(2))
        layer.out.bias.zero_()
    record = Taps()
    y, _ = layer(rows(A, B)[None], None, record)
    e = math.exp(1 / math.sqrt(2))  # B with B scores 1/√2, B with A scores 0
    close(record["attention"][0, 0], rows([1.0, 0.0], [1 / (1 + e), e / (1 + e)]))
    close(y[0], rows(A, [1 / (1 + e), e / (1 + e)]))


def test_heads_attend_apart() -> None:
    torch.manual_seed(0)
    layer, record = MultiHeadAttention(8, 4).double(), Taps()
    layer(torch.randn(1, 5, 8, dtype=torch.float64), None, record)
    first, second = record["attention"][0, :2]
    assert record["attention"].shape == (1, 4, 5, 5)
    assert (first - second).abs().max() > 1e-3


def test_a_cache_is_written_in_place_and_counts_its_positions() -> None:
    layer = MultiHeadAttention(4, 2)
    cache = layer.start(3, 6, torch.zeros(1))
    with torch.no_grad():
        _, after = layer(torch.randn(3, 2, 4), cache)
    assert after is not None
    assert after.keys is cache.keys
    assert after.n == 2
    assert (after.keys[:, :, :2] != 0).all()
    assert (after.keys[:, :, 2:] == 0).all()


def test_steps_through_a_cache_have_the_gradient_of_the_whole() -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(4, 2).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    cache, steps = layer.start(2, 5, x), []
    for x_t in x.split(1, dim=1):
        y, cache = layer(x_t, cache)
        steps.append(y)
    direction = torch.randn(2, 3, 4, dtype=torch.float64)
    by_steps = torch.autograd.grad(torch.cat(steps, dim=1), [x, layer.qkv.weight], direction)
    at_once = torch.autograd.grad(layer(x)[0], [x, layer.qkv.weight], direction)
    for given, expected in zip(by_steps, at_once, strict=True):
        torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)


def test_a_block_whose_attention_is_silent_passes_its_input_on() -> None:
    for block in (
        AttentionBlock(4, MultiHeadAttention(4, 2), 0.0),
        TransformerBlock(TransformerConfig(d_model=4, n_heads=2)),
    ):
        for name, parameter in block.named_parameters():
            if ".out." in name:
                torch.nn.init.zeros_(parameter)
        x = torch.randn(2, 3, 4)
        assert torch.equal(block(x)[0], x)


@pytest.mark.parametrize("kind", [MultiHeadAttention, BilinearHeads])
def test_a_step_past_the_cache_is_refused(kind: type[MultiHeadAttention | BilinearHeads]) -> None:
    """A slice that begins past the end is empty, so one more position would be written nowhere, and not be seen."""
    layer, x = kind(4, 1), torch.randn(2, 3, 4)
    _, cache = layer(x, layer.start(2, 3, x))
    with pytest.raises(AssertionError, match="4 positions in a cache with room for 3"):
        layer(x[:, :1], cache)
