from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.kernels.cross_entropy import chunked_cross_entropy, plain_cross_entropy

Loss = Callable[..., tuple[Tensor, Tensor]]


def inputs(N: int, V: int, D: int, p_real: float = 0.7, seed: int = 0) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    hidden, weight, bias = (
        torch.randn(*shape, generator=draw, dtype=torch.float64) for shape in ((N, D), (V, D), (V,))
    )
    targets = torch.randint(0, V, (N,), generator=draw)
    mask = torch.rand(N, generator=draw) < p_real
    return hidden.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), targets, mask


def loss_and_gradients(loss: Loss, *arguments: Tensor | None, **more: int) -> list[Tensor]:
    nats, count = loss(*arguments, **more)
    weights = [a for a in arguments[:3] if a is not None]
    return [nats.detach(), count, *torch.autograd.grad(nats / 3, weights)]


def test_two_words_and_equal_logits_cost_log_two() -> None:
    # h·w is 0 for both words, so p = 1/2; the masked third token costs nothing.
    hidden, weight = torch.zeros(3, 2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)
    mask = torch.tensor([True, True, False])
    nats, count = chunked_cross_entropy(hidden, weight, None, torch.tensor([0, 1, 1]), mask)
    assert float(nats) == pytest.approx(2 * math.log(2), abs=1e-15)
    assert int(count) == 2


def test_the_gradient_of_one_token_is_softmax_minus_onehot() -> None:
    # logits are (0, ln 3): p = (1/4, 3/4); target 0 gives dlogits = (-3/4, 3/4).
    hidden = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([[0.0], [math.log(3)]], dtype=torch.float64, requires_grad=True)
    nats, _ = chunked_cross_entropy(hidden, weight, None, torch.tensor([0]), torch.tensor([True]))
    nats.backward()  # type: ignore[no-untyped-call]
    assert nats.item() == pytest.approx(math.log(4), abs=1e-15)
    assert weight.grad is not None
    assert weight.grad.flatten().tolist() == pytest.approx([-0.75, 0.75], abs=1e-15)
    assert hidden.grad is not None
    assert float(hidden.grad) == pytest.approx(0.75 * math.log(3), abs=1e-15)


@given(
    N=st.integers(1, 40), V=st.integers(2, 30), D=st.integers(1, 9), chunk=st.integers(1, 50), seed=st.integers(0, 99)
)
def test_chunks_give_the_loss_and_gradients_of_the_whole(N: int, V: int, D: int, chunk: int, seed: int) -> None:
    arguments = inputs(N, V, D, seed=seed)
    whole = loss_and_gradients(plain_cross_entropy, *arguments)
    for a, b in zip(whole, loss_and_gradients(chunked_cross_entropy, *arguments, chunk=chunk), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)


def test_without_a_bias_and_without_real_tokens_it_agrees_too() -> None:
    hidden, weight, _, targets, mask = inputs(13, 7, 4)
    for m in (mask, torch.zeros_like(mask)):
        whole = loss_and_gradients(plain_cross_entropy, hidden, weight, None, targets, m)
        for a, b in zip(
            whole, loss_and_gradients(chunked_cross_entropy, hidden, weight, None, targets, m, chunk=5), strict=True
        ):
            assert torch.allclose(a, b, rtol=0, atol=1e-10)


def test_under_autocast_chunks_give_what_the_whole_gives() -> None:
    arguments = [a.float() if a.is_floating_point() else a for a in (t.detach() for t in inputs(40, 30, 8))]
    for tensor in arguments[:3]:
        tensor.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        whole = loss_and_gradients(plain_cross_entropy, *arguments)
        one_chunk = loss_and_gradients(chunked_cross_entropy, *arguments)
        chunks = loss_and_gradients(chunked_cross_entropy, *arguments, chunk=7)
    exact = loss_and_gradients(plain_cross_entropy, *arguments)
    assert all(g.dtype == torch.float32 for g in chunks[2:])
    assert torch.allclose(whole[0], chunks[0], rtol=1e-6, atol=0)
    for index, size in ((2, "d_hidden"), (3, "d_weight"), (4, "d_bias")):
        scale = exact[index].abs().max()
        rounding = (whole[index] - exact[index]).abs().max() / scale
        for result in (one_chunk, chunks):  # no further from the truth than plain autocast, within a bf16 step
            assert (result[index] - exact[index]).abs().max() / scale < rounding + 2**-8, size


def test_the_whole_logits_are_never_held() -> None:
    N, V, D, chunk = 64, 50, 4, 8
    hidden, weight, bias, targets, mask = inputs(N, V, D)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor):
                largest = max(largest, out.numel())
            return out

    with Watch():
        nats, _ = chunked_cross_entropy(hidden, weight, bias, targets, mask, chunk=chunk)
        nats.backward()  # type: ignore[no-untyped-call]
    assert largest == chunk * V < N * V


def test_without_gradients_nothing_is_kept_for_backward() -> None:
    arguments = inputs(9, 5, 3)
    with torch.no_grad():
        nats, _ = chunked_cross_entropy(*arguments)
    assert not nats.requires_grad
    assert torch.allclose(nats, plain_cross_entropy(*arguments)[0], rtol=0, atol=1e-10)


def test_going_back_twice_gives_the_same_gradient_twice() -> None:
    hidden, weight, bias, targets, mask = inputs(9, 5, 3)
    nats, _ = chunked_cross_entropy(hidden, weight, bias, targets, mask)
    first = torch.autograd.grad(nats, weight, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(nats, weight)[0])
