"""log P of one target a row: the chunked version against all logits held."""

import pytest
import torch
from torch import Tensor

from regard.kernels.cross_entropy import chunked_log_probs, plain_log_probs

N, D, V = 13, 4, 9


def parts(has_bias: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    draws = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(n, D, dtype=dtype, generator=draws).requires_grad_() for n in (N, V))
    bias = torch.randn(V, dtype=dtype, generator=draws).requires_grad_() if has_bias else None
    return hidden, weight, bias, torch.randint(V, (N,), generator=draws)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("chunk", [1, 5, 13, 100, None])
def test_chunks_change_neither_value_nor_gradient(chunk: int | None, has_bias: bool) -> None:
    hidden, weight, bias, targets = parts(has_bias)
    leaves = [leaf for leaf in (hidden, weight, bias) if leaf is not None]
    upstream = torch.linspace(-1, 2, N, dtype=torch.float64)  # each row's gradient is its own
    found = chunked_log_probs(hidden, weight, bias, targets, chunk)
    expected = plain_log_probs(hidden, weight, bias, targets)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    for mine, theirs in zip(
        torch.autograd.grad(found, leaves, upstream), torch.autograd.grad(expected, leaves, upstream), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_by_hand_two_words_of_which_one_is_three_times_as_likely() -> None:
    hidden, weight = torch.ones(1, 1).double(), torch.tensor([[0.0], [3.0]]).double().log().clamp_min(0)
    found = chunked_log_probs(hidden, weight, None, torch.tensor([1])).exp()
    torch.testing.assert_close(found, torch.tensor([0.75]).double(), rtol=0, atol=1e-15)


def test_autocast_multiplies_low_and_sums_high_in_both_passes() -> None:
    hidden, weight, bias, targets = parts(has_bias=True, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = chunked_log_probs(hidden, weight, bias, targets, 5)
        expected = plain_log_probs(hidden, weight, bias, targets)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.float(), rtol=0, atol=0.05)
    found.sum().backward()
    exact = torch.autograd.grad(plain_log_probs(hidden, weight, bias, targets).sum(), [hidden])[0]
    assert hidden.grad is not None
    assert hidden.grad.dtype == torch.float32
    torch.testing.assert_close(hidden.grad, exact, rtol=0, atol=0.1)
