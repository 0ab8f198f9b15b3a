"""A step whose count is on the device equals the step whose count is Python's."""

import pytest
import torch

from regard.kernels.kv_cache import KVCache, StaticKVCache
from regard.kernels.state import tensors_of
from regard.kernels.static_state import count_on_device, count_on_host, move_to
from regard.kernels.step_attention import fits_kernel
from regard.layers.attention import MultiHeadAttention
from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model

CPU = torch.device("cpu")


@pytest.mark.parametrize("n_before", [0, 1, 5])
def test_attention_with_a_count_on_the_device_equals_attention_with_a_number(n_before: int) -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 3).double()
    x = torch.randn(2, n_before + 3, 12, dtype=torch.float64)
    plain = counted = layer.start(2, 8, x)
    if n_before:
        _, plain = layer(x[:, :n_before], plain)
        counted = plain
    count = torch.tensor([n_before])
    counted = StaticKVCache(counted.keys.clone(), counted.values.clone(), count)
    for t in range(n_before, n_before + 3):
        y, plain = layer(x[:, t : t + 1], plain)
        z, counted = layer(x[:, t : t + 1], counted)
        count += 1
        torch.testing.assert_close(z, y, rtol=0, atol=1e-14)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none"])
def test_a_transformer_step_with_counts_on_the_device_equals_the_plain_one(positions: str) -> None:
    torch.manual_seed(0)
    config = TransformerConfig(d_model=8, n_heads=2, n_layers=2, max_context=9, positions=positions)
    model = build_model("transformer", config, 11).double().eval()
    ids = torch.randint(11, (3, 7))
    with torch.no_grad():
        _, plain = model.hidden(ids[:, :4], model.start(3, 9))
        _, again = model.hidden(ids[:, :4], model.start(3, 9))
        counted = count_on_device(again, CPU)
        for t in range(4, 7):
            h, plain = model.hidden(ids[:, t : t + 1], plain)
            g, after = model.step(ids[:, t : t + 1], counted)
            torch.testing.assert_close(g, h, rtol=0, atol=1e-14)
            move_to(counted, after)
    assert count_on_host(counted, 7).n == 7


def test_equal_counts_are_one_tensor_and_come_back_as_numbers() -> None:
    keys = torch.zeros(2, 3)
    moved = count_on_device((4, (KVCache(keys, keys, 4), KVCache(keys, keys, 4))), CPU)
    assert moved[0] is moved[1][0].n is moved[1][1].n
    assert moved[0].tolist() == [4]
    assert count_on_host(moved, 6) == (6, (KVCache(keys, keys, 6), KVCache(keys, keys, 6)))


def test_a_recurrent_state_has_no_counts() -> None:
    model = build_model("lstm", LSTMConfig(d_model=4), 11)
    state = model.start(2, 5)
    for before, after in zip(tensors_of(state), tensors_of(count_on_host(state, 3)), strict=True):
        assert before is after


def test_head_widths_that_the_kernel_takes() -> None:
    assert [k for k in range(1, 130) if fits_kernel(k)] == [16, 32, 64, 128]
