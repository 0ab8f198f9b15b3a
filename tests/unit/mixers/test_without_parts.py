"""Transformers and self-attention with parts left out: each by hand, and what the rest of the code makes of it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.kernels.static_state import count_on_device, move_to
from regard.layers.attention import MultiHeadAttention
from regard.mixers.attention import AttentionBlock
from regard.mixers.config import AttentionConfig, TransformerConfig
from regard.mixers.transformer import TransformerBlock
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.weights.ctranslate2 import describe_as_lm
from regard.weights.hugging_face import describe_as_gpt2

Tiny = Callable[..., LanguageModel]
CPU = torch.device("cpu")
EACH_PART = pytest.mark.parametrize("part", ["residual", "norm", "feed-forward", "values", "scale", "mask"])


def set_weights(layer: MultiHeadAttention, q: float, k: float) -> None:
    """W_q = q I, W_k = k I, W_v = W_o = I and no biases."""
    D = layer.out.in_features
    with torch.no_grad():
        layer.qkv.weight.copy_(torch.cat([q * torch.eye(D), k * torch.eye(D), torch.eye(D)])[: len(layer.qkv.weight)])
        layer.out.weight.copy_(torch.eye(D))
        layer.qkv.bias.zero_()
        layer.out.bias.zero_()


def test_without_the_scale_scores_are_plain_products() -> None:
    """x = (1, 0), (0, 1) twice over in four channels: q·k of the second is 0 and 2, and 2/√4 = 1 with the scale."""
    x = torch.tensor([[[1.0, 0, 1, 0], [0, 1, 0, 1]]], dtype=torch.float64)
    for is_scaled, score in ((True, 1.0), (False, 2.0)):
        layer = MultiHeadAttention(4, 1, is_scaled=is_scaled).double()
        set_weights(layer, 1.0, 1.0)
        weight = np.exp(score) / (1 + np.exp(score))  # on itself
        y, _ = layer(x)
        expected = torch.tensor([1 - weight, weight, 1 - weight, weight], dtype=torch.float64)
        torch.testing.assert_close(y[0, 1], expected, rtol=0, atol=1e-14)


def test_without_values_heads_average_what_they_read() -> None:
    """Queries of zero weigh all alike, so that the second position gets the mean of both."""
    layer = MultiHeadAttention(2, 2, has_values=False).double()
    set_weights(layer, 0.0, 1.0)
    assert tuple(layer.qkv.weight.shape) == (4, 2)
    y, _ = layer(torch.tensor([[[1.0, 5.0], [3.0, 7.0]]], dtype=torch.float64))
    assert y.tolist() == [[[1.0, 5.0], [2.0, 6.0]]]


def test_without_the_mask_the_first_position_sees_the_last() -> None:
    layer = MultiHeadAttention(2, 1, is_causal=False).double()
    set_weights(layer, 0.0, 1.0)
    x = torch.tensor([[[1.0, 5.0], [3.0, 7.0]]], dtype=torch.float64)
    assert layer(x)[0].tolist() == [[[2.0, 6.0], [2.0, 6.0]]]
    assert layer(x, layer.start(1, 2, x))[0].tolist() == [[[1.0, 5.0], [2.0, 6.0]]]  # through a cache it does not


def test_without_the_residual_a_block_that_adds_nothing_gives_nothing() -> None:
    x = torch.tensor([[[1.0, 5.0], [3.0, 7.0]]], dtype=torch.float64)
    for without, expected in (((), x), (("residual",), torch.zeros_like(x))):
        blocks = [
            TransformerBlock(TransformerConfig(d_model=2, n_heads=1, without=without)).double(),
            AttentionBlock(2, MultiHeadAttention(2, 1), 0.0, without).double(),
        ]
        for block in blocks:
            for name, parameter in block.named_parameters():
                if "out" in name:
                    torch.nn.init.zeros_(parameter)
            torch.testing.assert_close(block(x)[0], expected, rtol=0, atol=0)


def test_without_norm_and_feed_forward_a_block_is_x_and_its_attention() -> None:
    block = TransformerBlock(TransformerConfig(d_model=2, n_heads=1, without=("norm", "feed-forward"))).double()
    set_weights(block.attention, 0.0, 1.0)
    y, _, _ = block(torch.tensor([[[1.0, 5.0], [3.0, 7.0]]], dtype=torch.float64))
    assert y.tolist() == [[[2.0, 10.0], [5.0, 13.0]]]
    assert {name.split(".")[0] for name, _ in block.named_parameters()} == {"attention"}


def test_a_model_with_all_its_parts_has_the_weights_it_always_had(tiny_model: Tiny) -> None:
    names = {name.removeprefix("layers.0.") for name, _ in tiny_model("transformer").mixer.named_parameters()}
    parts = ("attention.qkv", "attention.out", "norm_attention", "norm_feed_forward", "feed_forward.up")
    assert {f"{part}.{kind}" for part in parts for kind in ("weight", "bias")} < names


@EACH_PART
def test_a_step_over_a_state_that_stays_in_place_equals_the_plain_one(tiny_model: Tiny, part: str) -> None:
    model = tiny_model("transformer", without=[part]).eval()
    ids = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        _, plain = model.hidden(ids[:, :4], model.start(3, 7))
        _, again = model.hidden(ids[:, :4], model.start(3, 7))
        counted = count_on_device(again, CPU)
        for t in range(4, 7):
            h, plain = model.hidden(ids[:, t : t + 1], plain)
            g, after = model.step(ids[:, t : t + 1], counted)
            torch.testing.assert_close(g, h, rtol=0, atol=1e-12)
            move_to(counted, after)


@pytest.mark.parametrize("name", ["transformer", "attention"])
def test_without_the_mask_training_sees_the_future_and_scoring_does_not(tiny_model: Tiny, name: str) -> None:
    leaking, masked = tiny_model(name, without=["mask"]), tiny_model(name)
    masked.load_state_dict(leaking.state_dict())
    ids = torch.randint(11, (1, 6), generator=torch.Generator().manual_seed(1))
    later = ids.clone()
    later[:, 5] = (later[:, 5] + 1) % 11
    assert not torch.allclose(leaking(ids)[0][:, :5], leaking(later)[0][:, :5])
    # Word by word there is nothing to see ahead, so the same weights with the mask say the same.
    text = np.random.default_rng(0).integers(0, 11, 20)
    ours, theirs = as_next_token(leaking), as_next_token(masked)
    np.testing.assert_allclose(ours.nats(text), theirs.nats(text), rtol=0, atol=1e-12)
    one, other = (each.start(ids)[0] for each in (ours, theirs))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_without_the_mask_every_pair_is_charged(tiny_model: Tiny) -> None:
    """8 channels, 2 layers: 7 positions seen in place of (1 + ... + 7) / 7 = 4, two multiply-adds a channel each."""
    difference = tiny_model("transformer", without=["mask"]).flops_per_token(7) - tiny_model(
        "transformer"
    ).flops_per_token(7)
    assert difference == 2 * (2 * 2 * 8 * 3)


def test_a_model_without_its_mask_reads_no_texts_for_a_task(tiny_model: Tiny) -> None:
    model, ids = tiny_model("transformer", without=["mask"]), torch.zeros(1, 3, dtype=torch.long)
    with pytest.raises(RegardError, match=r"without its mask cannot read texts for a task.* no mask\."):
        model.encode(ids, torch.ones_like(ids, dtype=torch.bool))


@EACH_PART
def test_other_programs_are_not_handed_what_they_cannot_say(part: str) -> None:
    config = TransformerConfig(without=(part,))
    with pytest.raises(RegardError, match=rf"model.without = \['{part}'\], which Hugging Face's GPT-2 cannot say"):
        describe_as_gpt2("transformer", config, "runs/x")
    with pytest.raises(RegardError, match=rf"model.without = \['{part}'\], and CTranslate2 runs whole Transformers"):
        describe_as_lm("transformer", config, "runs/x")


def test_what_cannot_be_left_out_is_refused_in_words() -> None:
    with pytest.raises(RegardError, match=r"without must be one of residual, norm, feed-forward.* not 'nrom'"):
        TransformerConfig.from_dict({"without": ["nrom"]})
    with pytest.raises(RegardError, match="without must be one of residual, norm, values, scale, mask, not 'feed"):
        AttentionConfig.from_dict({"without": ["feed-forward"]})
    with pytest.raises(RegardError, match="without names norm twice; leave one out"):
        TransformerConfig.from_dict({"without": ["norm", "norm"]})
    with pytest.raises(RegardError, match=r"without names scale and heads is averaged.* Set heads to concatenated"):
        AttentionConfig.from_dict({"without": ["norm", "scale"], "heads": "averaged"})
    with pytest.raises(RegardError, match=r"Write a list in brackets: \[norm\]"):
        TransformerConfig.from_dict({"without": "norm"})


def test_settings_that_mean_nothing_any_more_are_named() -> None:
    (mask,) = TransformerConfig(without=("mask",)).notes()
    assert "the training loss means nothing" in mask
    assert AttentionConfig(without=("mask",)).notes() == [mask]
    notes = TransformerConfig(without=("norm", "feed-forward"), norm="post", d_ff=8).notes()
    assert notes == [
        "norm changes nothing: without leaves out the layer norms.",
        "d_ff changes nothing: without leaves out the feed-forward layers.",
    ]
    assert TransformerConfig().notes() == []
