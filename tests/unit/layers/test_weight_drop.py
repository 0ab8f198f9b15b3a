from typing import Any

import pytest
import torch
from torch import Tensor

from regard.kernels.fused_recurrence import in_one_buffer
from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps

KINDS = pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
B, T, D, H = 3, 6, 4, 5


def made(kind: Any, p_weight: float) -> tuple[Any, Tensor, Any]:
    torch.manual_seed(0)
    layer = RecurrentLayer(kind, D, H, p_weight).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    return layer, x, layer.start(B, x)


@KINDS
def test_only_the_weights_from_state_to_state_are_dropped_and_the_rest_is_scaled(kind: Any) -> None:
    layer, _, _ = made(kind, 0.4)
    W, U, b, b_prime = layer.kernel.all_weights[0]
    dropped = layer.weights()
    assert dropped[0] is W
    assert dropped[2] is b
    assert dropped[3] is b_prime
    is_kept = dropped[1] != 0
    assert 0 < is_kept.double().mean() < 1
    torch.testing.assert_close(dropped[1][is_kept], U[is_kept] / 0.6, rtol=0, atol=1e-15)


@KINDS
def test_both_paths_draw_one_mask_a_pass_and_agree(kind: Any) -> None:
    """Two draws a pass would leave the random numbers elsewhere; a mask a step would give another result."""
    layer, x, state = made(kind, 0.4)
    results = []
    for record in (None, Taps()):
        torch.manual_seed(5)
        y, after = layer(x, state, record)
        results.append((y, *after, torch.rand(1)))
    for fused, plain in zip(*results, strict=True):
        torch.testing.assert_close(fused, plain, rtol=0, atol=1e-14)
    torch.manual_seed(5)
    torch.nn.functional.dropout(layer.kernel.all_weights[0][1], 0.4)
    assert torch.equal(torch.rand(1), results[0][-1])


@KINDS
def test_every_pass_drops_others_and_the_weights_themselves_stay(kind: Any) -> None:
    layer, x, state = made(kind, 0.4)
    before = [w.clone() for w in layer.kernel.all_weights[0]]
    first, second = layer(x, state)[0], layer(x, state)[0]
    assert not torch.allclose(first, second)
    assert all(torch.equal(a, b) for a, b in zip(before, layer.kernel.all_weights[0], strict=True))


@KINDS
def test_dropped_weights_get_no_gradient(kind: Any) -> None:
    layer, x, state = made(kind, 0.4)
    torch.manual_seed(5)
    layer(x, state)[0].sum().backward()
    torch.manual_seed(5)
    is_kept = layer.weights()[1] != 0
    grad = layer.kernel.all_weights[0][1].grad
    assert (grad[~is_kept] == 0).all()
    assert (grad[is_kept] != 0).any()


@KINDS
def test_nothing_is_dropped_in_evaluation(kind: Any) -> None:
    layer, x, state = made(kind, 0.4)
    plain, _, _ = made(kind, 0.0)
    for record in (None, Taps()):
        assert torch.equal(layer.eval()(x, state, record)[0], plain.eval()(x, state, record)[0])


def test_one_buffer_holds_all_matrices_and_then_all_biases_and_passes_gradients_on() -> None:
    layers = [RecurrentLayer("lstm", D, H), RecurrentLayer("lstm", H, H)]
    given = [layer.weights() for layer in layers]
    flat = in_one_buffer(given, given[0][0].dtype)
    order = [flat[0][0], flat[0][1], flat[1][0], flat[1][1], flat[0][2], flat[0][3], flat[1][2], flat[1][3]]
    place = 0
    for part in order:
        assert part.storage_offset() == place
        assert part.untyped_storage().data_ptr() == order[0].untyped_storage().data_ptr()
        place += part.numel()
    for layer, whole in zip(given, flat, strict=True):
        for a, b in zip(layer, whole, strict=True):
            assert torch.equal(a, b)
    sum(part.square().sum() for part in order).backward()  # type: ignore[union-attr]
    for layer_weights in given:
        for w in layer_weights:
            torch.testing.assert_close(w.grad, 2 * w.detach())
