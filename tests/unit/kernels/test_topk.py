"""The most probable tokens, in an order that leaves no tie."""

import math

import pytest
import torch

from regard.kernels.topk import topk, topk_by_key

WAYS = pytest.mark.parametrize("way", [topk, topk_by_key])


@WAYS
@pytest.mark.parametrize("V", [3, 63, 64, 65, 1000, 5000])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_stable_sort_finds_the_same(way, V: int, k: int) -> None:  # type: ignore[no-untyped-def]
    draws = torch.Generator().manual_seed(V)
    fine = torch.randn(6, V, generator=draws)
    coarse = fine.round() - 3.0  # many ties, at the last place too
    coarse[0], coarse[1, ::2] = -2.0, -math.inf
    for log_probs in (fine, coarse):
        values, order = log_probs.sort(dim=-1, descending=True, stable=True)
        found = way(log_probs, min(k, V))
        assert torch.equal(found[0], values[:, :k])
        assert torch.equal(found[1], order[:, :k])


def test_nan_comes_first_and_no_zero_is_above_another() -> None:
    log_probs = torch.tensor([[-1.0, -0.0, 0.0, -2.0], [-1.0, 5.0, -math.inf, math.copysign(math.nan, -1.0)]])
    values, ids = topk_by_key(log_probs, 2)
    assert ids.tolist() == [[1, 2], [3, 1]]
    assert values[1].isnan().tolist() == [True, False]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_finds_the_same() -> None:
    log_probs = torch.randn(7, 32_001, generator=torch.Generator().manual_seed(0)).mul(4).round()
    for here, there in zip(topk(log_probs, 5), topk(log_probs.cuda(), 5), strict=True):
        assert torch.equal(here, there.cpu())
