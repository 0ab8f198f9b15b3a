"""Attention by two products, which is that of the fused kernel."""

import pytest
import torch
from torch.nn import functional

from regard.kernels import full_attention as kernel
from regard.kernels.full_attention import attend_by_products, full_attention


def draw_heads(dtype: torch.dtype, S: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draws = torch.Generator().manual_seed(0)
    rows = torch.randn(2, S, 3, 3, 4, generator=draws, dtype=torch.float64).to(dtype)  # not contiguous as heads
    q, k, v = rows.permute(2, 0, 3, 1, 4)
    return q, k, v


@pytest.mark.parametrize("is_masked", [False, True])
def test_two_products_give_what_the_fused_kernel_gives(is_masked: bool) -> None:
    seen = torch.tensor([[True] * 5, [True, True, False, False, False]])[:, None, None] if is_masked else None
    q, k, v = draw_heads(torch.float64)
    right = functional.scaled_dot_product_attention(q[:, :, :3], k, v, seen)
    torch.testing.assert_close(attend_by_products(q[:, :, :3], k, v, seen), right, rtol=0, atol=1e-12)


def test_products_are_for_short_texts_in_bfloat16_without_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "prefers_onednn", lambda: True)
    asked = []
    monkeypatch.setattr(kernel, "attend_by_products", lambda *given: asked.append(given) or attend_by_products(*given))
    q, k, v = draw_heads(torch.bfloat16)
    right = functional.scaled_dot_product_attention(*(each.double() for each in (q, k, v)))
    full_attention(q, k, v, None)  # a gradient may be wanted
    with torch.no_grad():
        full_attention(q, k, v, None, p_dropout=0.5)
        full_attention(q.float(), k.float(), v.float(), None)
        assert asked == []
        torch.testing.assert_close(full_attention(q, k, v, None).double(), right, rtol=0, atol=0.03)
        assert len(asked) == 1
        monkeypatch.setattr(kernel, "MAX_SCORES", 2 * 3 * 5 * 5 - 1)
        full_attention(q, k, v, None)
    assert len(asked) == 1
