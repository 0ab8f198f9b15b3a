"""Restricted attention is full attention behind a band of a mask, whatever the lengths."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from regard.kernels.causal_attention import window_attention, window_mask
from regard.layers.attention import MultiHeadAttention, attention_weights
from regard.layers.taps import Taps

EXACT = {"rtol": 0, "atol": 1e-12}
B, N, K = 2, 3, 4
seeds = st.integers(0, 2**16)


def vectors(seed: int, *lengths: int) -> list[Tensor]:
    draws = torch.Generator().manual_seed(seed)
    return [torch.randn(B, N, n, K, dtype=torch.float64, generator=draws).requires_grad_() for n in lengths]


def test_the_mask_is_a_band() -> None:
    seen = window_mask(3, 4, 2, torch.device("cpu")).int().tolist()
    assert seen == [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


@given(seed=seeds, T=st.integers(1, 70), r=st.integers(1, 40), n_before=st.integers(0, 39))
@example(seed=0, T=1, r=1, n_before=0)
@example(seed=0, T=40, r=1, n_before=0)
@example(seed=0, T=5, r=9, n_before=0)  # n < r
@example(seed=0, T=60, r=20, n_before=0)  # a multiple of r
@example(seed=0, T=61, r=20, n_before=19)
def test_it_equals_masked_full_attention_in_value_and_gradient(seed: int, T: int, r: int, n_before: int) -> None:
    S = T + min(n_before, r - 1)
    q, k, v = vectors(seed, T, S, S)
    dy = vectors(seed + 1, T)[0].detach()
    expected = attention_weights(q, k, window_mask(T, S, r, q.device)) @ v
    given = window_attention(q, k, v, r, p_dropout=0.0)
    torch.testing.assert_close(given, expected, **EXACT)
    for ours, full in zip(*(torch.autograd.grad(y, (q, k, v), dy) for y in (given, expected)), strict=True):
        torch.testing.assert_close(ours, full, **EXACT)


@given(seed=seeds, r=st.integers(1, 20), cuts=st.lists(st.just(1) | st.integers(2, 30), min_size=1, max_size=9))
@example(seed=0, r=3, cuts=[5, 1, 1, 1, 1])  # a prompt, then token by token round the cache
@pytest.mark.parametrize("is_plain", [False, True], ids=["blocks", "plain"])
def test_through_the_rolling_cache_pieces_equal_the_whole(is_plain: bool, seed: int, r: int, cuts: list[int]) -> None:
    torch.manual_seed(seed)
    layer, T = MultiHeadAttention(6, 2, n_window=r).double(), sum(cuts)
    x = torch.randn(B, T, 6, dtype=torch.float64)
    expected, _ = layer(x)
    cache, pieces = layer.start(B, T, x), []
    with torch.no_grad():
        for piece in x.split(cuts, dim=1):
            y, cache = layer(piece, cache, Taps() if is_plain else None)
            pieces.append(y)
    assert cache is not None
    assert cache[0].shape[2] == min(r, T)  # however long the text
    torch.testing.assert_close(torch.cat(pieces, dim=1), expected.detach(), **EXACT)


def test_recorded_weights_are_in_the_order_of_the_text_after_the_cache_has_wrapped_too() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(6, 2, n_window=3).double(), torch.randn(B, 8, 6, dtype=torch.float64)
    whole = Taps()
    layer(x, None, whole)
    cache = layer.start(B, 8, x)
    with torch.no_grad():
        _, cache = layer(x[:, :4], cache)
        for t in range(4, 8):
            record = Taps()
            _, cache = layer(x[:, t : t + 1], cache, record)
            expected = whole["attention"][:, :, t : t + 1, t - 2 : t + 1].detach()
            torch.testing.assert_close(record["attention"], expected, **EXACT)


@pytest.mark.parametrize("T", [100, 1000])
def test_nothing_of_the_size_of_a_square_is_made(T: int) -> None:
    """Every tensor that a training pass makes grows with T r, none with T²."""
    r, sizes = 4, []

    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            found = func(*args, **(kwargs or {}))
            if isinstance(found, Tensor):
                sizes.append(found.numel())
            return found

    q, k, v = vectors(0, T, T, T)
    with Seen():
        window_attention(q, k, v, r, p_dropout=0.0).sum().backward()
    C = 16  # a block's least length
    assert max(sizes) <= B * N * (T + 2 * C) * 2 * C
    with Seen():
        window_mask(T, T, r, q.device)
    assert max(sizes) >= T * T  # what is looked for would be found
