"""Products by oneDNN, which are the products of any other library."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from regard.kernels import linear as kernel
from regard.kernels.cross_entropy import chunked_cross_entropy
from regard.kernels.linear import Linear, copy_in_order, is_for_onednn, lay_out

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"),
    reason="torch has no oneDNN here",
)


@pytest.fixture
def small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let oneDNN multiply on any CPU, however little it is."""
    monkeypatch.setattr(kernel, "prefers_onednn", lambda: True)
    monkeypatch.setattr(kernel, "MIN_PRODUCTS", 1)


def whole(*shape: int) -> Tensor:
    """Whole numbers, whose products and sums are exact in float32 in any order."""
    return torch.randint(-4, 5, shape).float().requires_grad_()


@pytest.mark.usefixtures("small_products")
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_are_torchs(has_bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = Linear(5, 7, bias=has_bias)
    for parameter in layer.parameters():
        parameter.data = whole(*parameter.shape).detach()
    x, dy = whole(2, 3, 5), whole(2, 3, 7).detach()
    given = [x, *layer.parameters()]
    y = layer(x)
    assert y.grad_fn is not None
    assert "OneDNN" in y.grad_fn.name()
    expected = functional.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(y, expected, rtol=0, atol=0)
    for ours, theirs in zip(*(torch.autograd.grad(out, given, dy) for out in (y, expected)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), expected, rtol=0, atol=0)


@pytest.mark.usefixtures("small_products")
def test_the_loss_has_the_same_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    hidden, W, b = (torch.randn(shape, requires_grad=True) for shape in ((6, 8), (11, 8), (11,)))
    targets, mask = torch.randint(11, (6,)), torch.tensor([True] * 5 + [False])

    def differentiate() -> list[Tensor]:
        nats, _ = chunked_cross_entropy(hidden, W, b, targets, mask, chunk=4)
        return [nats, *torch.autograd.grad(nats, (hidden, W, b))]

    by_onednn = differentiate()
    monkeypatch.setattr(kernel, "prefers_onednn", lambda: False)
    for ours, theirs in zip(by_onednn, differentiate(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6)


def test_it_multiplies_large_float32_matrices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "prefers_onednn", lambda: True)
    x, W = torch.zeros(512, 256), torch.zeros(64, 256)
    assert is_for_onednn(x, W)
    assert not is_for_onednn(x[:511], W), "too small"
    assert not is_for_onednn(x.double(), W.double())
    assert not is_for_onednn(x.to("meta"), W.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not is_for_onednn(x, W)


@pytest.fixture
def layer() -> Linear:
    torch.manual_seed(0)
    layer = Linear(5, 7)
    for parameter in layer.parameters():
        parameter.data = whole(*parameter.shape).detach()
    return layer.eval()


@pytest.mark.parametrize("n_rows", [1, 3])
def test_weights_in_another_order_give_the_same(
    layer: Linear, n_rows: int, small_products: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "MIN_PACKED", 1)
    x = whole(n_rows, 1, 5).detach()
    lay_out(layer, n_rows)
    assert layer.layout is not None
    assert layer.layout.is_for(x)
    assert layer.layout.weight.is_mkldnn == (n_rows > 1)
    for some in (x, whole(4, 5).detach(), whole(1, 5).detach()):  # other numbers of rows too
        with torch.inference_mode():
            torch.testing.assert_close(layer(some), functional.linear(some, *layer.parameters()), rtol=0, atol=0)


def test_a_weight_that_was_changed_is_not_multiplied_in_its_old_state(layer: Linear) -> None:
    x = whole(1, 5).detach()
    lay_out(layer, 1)
    old = layer.layout
    with torch.no_grad():
        layer.weight += 1
        torch.testing.assert_close(layer(x), functional.linear(x, *layer.parameters()), rtol=0, atol=0)
    lay_out(layer, 1)
    assert layer.layout is not old
    layer.weight.data = layer.weight.detach() + 1
    with torch.no_grad():
        torch.testing.assert_close(layer(x), functional.linear(x, *layer.parameters()), rtol=0, atol=0)
    layer.train()
    assert layer.layout is None


def test_the_fused_adamw_leaves_no_copy_of_old_weights(layer: Linear) -> None:
    lay_out(layer, 1)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    layer(whole(1, 5)).sum().backward()
    optimizer.step()
    lay_out(layer, 1)
    assert layer.layout is not None
    torch.testing.assert_close(layer.layout.weight, layer.weight, rtol=0, atol=0)


def test_a_copy_serves_until_its_weight_changes() -> None:
    W = torch.nn.Parameter(torch.randn(7, 5))
    first = copy_in_order(W, 1)
    assert first is not None
    assert copy_in_order(W, 1, first) is first
    with torch.no_grad():
        W += 1
    second = copy_in_order(W, 1, first)
    assert second is not None
    assert second is not first
    torch.testing.assert_close(second.weight, W, rtol=0, atol=0)
