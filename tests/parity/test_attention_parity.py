"""Our attention and Transformer blocks against torch's, weights copied across."""

import pytest
import torch
from torch import Tensor, nn

from regard.kernels.causal_attention import is_for_blocks
from regard.layers.attention import MultiHeadAttention, causal_attention
from regard.layers.taps import Taps
from regard.mixers.config import TransformerConfig
from regard.mixers.transformer import TransformerBlock

EXACT = {"rtol": 0, "atol": 1e-12}
B, T, D, N, F = 3, 9, 12, 3, 20
PATHS = pytest.mark.parametrize("is_plain", [False, True], ids=["fused", "plain"])
HIDDEN = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)  # torch's masks mark what is hidden


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    pairs = {"qkv.weight": theirs.in_proj_weight, "qkv.bias": theirs.in_proj_bias}
    ours.load_state_dict(pairs | {f"out.{name}": w for name, w in theirs.out_proj.named_parameters()})


def randomise(module: nn.Module) -> None:
    """torch starts biases at 0 and norms at 1, which would hide a mistake in them."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)


@PATHS
def test_multi_head_attention_equals_torchs(is_plain: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D, N, batch_first=True).double()
    randomise(theirs)
    ours = MultiHeadAttention(D, N).double()
    copy_attention(ours, theirs)
    x = torch.randn(B, T, D, dtype=torch.float64)
    record = Taps() if is_plain else None
    y, _ = ours(x, None, record)
    expected, weights = theirs(x, x, x, attn_mask=HIDDEN, average_attn_weights=False)
    torch.testing.assert_close(y, expected, **EXACT)
    if record is not None:
        torch.testing.assert_close(record["attention"], weights, **EXACT)


def gelu(x: Tensor) -> Tensor:
    return nn.functional.gelu(x, approximate="tanh")


@PATHS
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_equals_torchs_encoder_layer_under_a_causal_mask(norm: str, activation: str, is_plain: bool) -> None:
    torch.manual_seed(0)
    function = gelu if activation == "gelu" else "relu"
    theirs = nn.TransformerEncoderLayer(
        D, N, F, dropout=0.0, activation=function, batch_first=True, norm_first=norm == "pre"
    ).double()
    randomise(theirs)
    ours = TransformerBlock(TransformerConfig(d_model=D, n_heads=N, d_ff=F, norm=norm, activation=activation)).double()
    copy_attention(ours.attention, theirs.self_attn)
    ours.norm_attention.load_state_dict(theirs.norm1.state_dict())
    ours.norm_feed_forward.load_state_dict(theirs.norm2.state_dict())
    ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.out.load_state_dict(theirs.linear2.state_dict())
    x = torch.randn(B, T, D, dtype=torch.float64)
    y = ours(x, None, Taps() if is_plain else None)[0]
    torch.testing.assert_close(y, theirs(x, src_mask=HIDDEN, is_causal=True), **EXACT)


@pytest.mark.parametrize("p", [0.0, 0.3])
@pytest.mark.parametrize("length", [65, 128, 200])
def test_attention_in_blocks_equals_torchs_kernel_and_its_gradients(length: int, p: float) -> None:
    """With dropout too, which draws the same numbers in the same order."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, N, length, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    torch.manual_seed(1)
    expected, next_draw = nn.functional.scaled_dot_product_attention(q, k, v, None, p, is_causal=True), torch.rand(1)
    torch.manual_seed(1)
    given = causal_attention(q, k, v, p_dropout=p)
    assert torch.rand(1) == next_draw
    assert given.grad_fn is not None
    assert "Blocked" in given.grad_fn.name()
    torch.testing.assert_close(given, expected, **EXACT)
    dy = torch.randn_like(expected)
    for ours, theirs in zip(*(torch.autograd.grad(y, (q, k, v), dy) for y in (given, expected)), strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)


def test_blocks_are_for_training_on_a_cpu_over_a_context_of_middle_length() -> None:
    def heads(length: int, **options: object) -> Tensor:
        return torch.zeros(1, 1, length, 4, requires_grad=True, **options)  # type: ignore[call-overload, no-any-return]

    assert is_for_blocks(heads(256))
    assert not is_for_blocks(heads(64))
    assert not is_for_blocks(heads(513))
    assert not is_for_blocks(heads(256).detach())
    assert not is_for_blocks(heads(256, dtype=torch.bfloat16))
