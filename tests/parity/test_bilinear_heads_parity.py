"""Averaged heads against their formula, head by head and sum by sum."""

import math

import pytest
import torch

from regard.layers.bilinear_heads import BilinearHeads
from regard.layers.taps import Taps

EXACT = {"rtol": 0, "atol": 1e-12}
B, T, D, N = 3, 9, 8, 5


@pytest.mark.parametrize("record", [None, Taps()], ids=["fused", "plain"])
def test_averaged_heads_equal_their_einsum(record: Taps | None) -> None:
    torch.manual_seed(0)
    layer = BilinearHeads(D, N).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    scores = torch.einsum("btd,nde,bse->bnts", x, layer.W, x) / math.sqrt(D)
    future = torch.ones(T, T).triu(1) > 0
    A = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    expected = torch.einsum("bnts,bsd,nde->bte", A, x, layer.V) / N
    y, _ = layer(x, None, record)
    torch.testing.assert_close(y, expected, **EXACT)
    if record is not None:
        torch.testing.assert_close(record["attention"], A, **EXACT)


def test_concatenated_heads_are_averaged_ones_of_low_rank() -> None:
    """W_n = √N W_q W_kᵀ and V_n = N W_v W_o, each of rank D/N: √N since there the scores are divided by √(D/N)."""
    from regard.layers.attention import MultiHeadAttention

    torch.manual_seed(0)
    D, N = 8, 4
    K = D // N
    concatenated, averaged = MultiHeadAttention(D, N).double(), BilinearHeads(D, N).double()
    torch.nn.init.zeros_(concatenated.qkv.bias)
    torch.nn.init.zeros_(concatenated.out.bias)
    W_q, W_k, W_v = (w.view(N, K, D) for w in concatenated.qkv.weight.detach().chunk(3))
    W_o = concatenated.out.weight.detach().view(D, N, K)
    averaged.load_state_dict(
        {
            "W": math.sqrt(N) * torch.einsum("nkd,nke->nde", W_q, W_k),
            "V": N * torch.einsum("nkd,enk->nde", W_v, W_o),
        }
    )
    x = torch.randn(B, T, D, dtype=torch.float64)
    torch.testing.assert_close(averaged(x)[0], concatenated(x)[0], **EXACT)


def test_scores_start_at_size_one() -> None:
    torch.manual_seed(0)
    D = 256
    layer = BilinearHeads(D, 4)
    x = torch.nn.functional.layer_norm(torch.randn(64, D), (D,))
    scores = torch.einsum("td,nde,se->nts", x, layer.W, x) / math.sqrt(D)
    assert 0.9 < scores.std().item() < 1.1


def test_the_cache_keeps_each_input_once_for_all_heads() -> None:
    layer = BilinearHeads(D, N)
    cache = layer.start(B, 6, torch.zeros(1))
    x = torch.randn(B, 2, D)
    _, after = layer(x, cache)
    assert after is not None
    inputs, n = after
    assert n == 2
    assert inputs.shape == (B, 6, D)
    assert torch.equal(inputs[:, :2], x)
