"""Each kernel equals the plain path beside it. These run where there is a GPU."""

import pytest
import torch
from torch import nn

from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig, SamplingConfig
from regard.decode.generate import generate_all
from regard.kernels.argmax import argmax
from regard.kernels.cross_entropy import chunked_cross_entropy, plain_cross_entropy
from regard.kernels.step_attention import (
    plain_step_attention,
    plain_step_cross_attention,
    step_attention,
    step_cross_attention,
)
from regard.kernels.step_linear import plain_step_linear, plain_step_norm, step_linear, step_norm
from regard.models.gradient_next_token import GradientNextToken, can_be_captured
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.models.seq2seq_next_token import Translating
from regard.models.table import build_model, model_config

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = torch.device("cuda")


@pytest.mark.parametrize("vocab_size", [11, 5000, 50257])
@pytest.mark.parametrize("has_bias", [False, True])
def test_the_loss_and_its_gradients_equal_the_plain_ones(vocab_size: int, has_bias: bool) -> None:
    torch.manual_seed(0)
    h, W = torch.randn(300, 32, device=GPU), torch.randn(vocab_size, 32, device=GPU)
    b = torch.randn(vocab_size, device=GPU) if has_bias else None
    targets, mask = torch.randint(vocab_size, (300,), device=GPU), torch.rand(300, device=GPU) > 0.3
    found = []
    for loss in (chunked_cross_entropy, plain_cross_entropy):
        leaves = [None if x is None else x.clone().requires_grad_() for x in (h, W, b)]
        nats, count = loss(leaves[0], leaves[1], leaves[2], targets, mask)  # type: ignore[arg-type]
        (nats / 7).backward()  # type: ignore[no-untyped-call]
        found.append([nats, count, *(x.grad for x in leaves if x is not None)])
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 300])
def test_attention_of_one_step_equals_the_plain_one(n: int) -> None:
    torch.manual_seed(0)
    q, k, v = (part.view(2, 1, 3, 64).transpose(1, 2) for part in torch.randn(2, 1, 576, device=GPU).chunk(3, dim=-1))
    keys, values, count = (
        torch.randn(2, 3, 512, 64, device=GPU),
        torch.randn(2, 3, 512, 64, device=GPU),
        torch.tensor([n], device=GPU),
    )
    there = keys.clone(), values.clone()
    ours = step_attention(q, k, v, keys, values, count)
    torch.testing.assert_close(ours, plain_step_attention(q, k, v, *there, count), rtol=0, atol=1e-5)
    assert torch.equal(keys, there[0])
    assert torch.equal(values, there[1])


@pytest.mark.parametrize("activation", [None, "gelu", "gelu_erf", "relu", "swish"])
@pytest.mark.parametrize(("d_in", "d_out"), [(48, 5), (768, 2304), (3072, 768), (1600, 16)])
@torch.no_grad()
def test_a_linear_step_equals_the_plain_one(d_in: int, d_out: int, activation: str | None) -> None:
    torch.manual_seed(0)
    x, W, b = (torch.randn(*shape, device=GPU) for shape in ((2, d_in), (d_out, d_in), (d_out,)))
    norm, residual = nn.LayerNorm(d_in, device=GPU), torch.randn(2, d_out, device=GPU)
    W /= d_in**0.5
    ours = step_linear(x, W, b, norm, activation, residual)
    torch.testing.assert_close(ours, plain_step_linear(x, W, b, norm, activation, residual), rtol=0, atol=1e-4)


@pytest.mark.parametrize("has_sum", [False, True])
@torch.no_grad()
def test_a_sum_and_its_norm_equal_the_plain_ones(has_sum: bool) -> None:
    torch.manual_seed(0)
    norm, x = nn.LayerNorm(768, device=GPU), torch.randn(70, 768, device=GPU)
    y = torch.randn(70, 768, device=GPU) if has_sum else None
    for ours, plain in zip(step_norm(x, norm, y), plain_step_norm(x, norm, y), strict=True):
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("V", [7, 8192, 50257])
def test_the_argmax_is_the_first_of_the_largest(V: int) -> None:
    torch.manual_seed(0)
    logits = torch.randint(100, (5, V + 3), device=GPU).float()[:, :V]
    logits[1] = 0.0
    first = [row.index(max(row)) for row in logits.tolist()]
    assert argmax(logits).tolist() == first


SMALL = {"transformer": {"max_context": 48}, "rnn-attention": {"max_memory": 7}, "pointer": {"max_memory": 7}}


@pytest.mark.parametrize("name", ["transformer", "lstm", "rnn-attention", "pointer"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_captured_step_writes_the_same_texts(name: str, temperature: float) -> None:
    """Twice with each model: the second text is read with the step that the first one left."""
    torch.manual_seed(0)
    model = build_model(name, model_config(name, {"d_model": 64} | SMALL.get(name, {})), 50).double()
    sampling = SamplingConfig(max_tokens=100, temperature=temperature)
    prompts = torch.randint(1, 50, (2, 3, 5))
    on_cpu = [generate_all(GradientNextToken(model), prompt, sampling) for prompt in prompts]
    on_gpu = GradientNextToken(model.to(GPU))
    assert can_be_captured(model, prompts[0])
    assert [generate_all(on_gpu, prompt, sampling) for prompt in prompts] == on_cpu


@pytest.mark.parametrize("n", [0, 1, 17, 128, 200])
def test_attention_to_a_past_in_other_rows_equals_the_plain_one(n: int) -> None:
    torch.manual_seed(0)
    R = 5
    q, k, v = (part.view(R, 1, 3, 64).transpose(1, 2) for part in torch.randn(R, 1, 576, device=GPU).chunk(3, dim=-1))
    keys, values = (torch.randn(R, 3, 256, 64, device=GPU) for _ in range(2))
    where = torch.randint(R, (R, 256), dtype=torch.int32, device=GPU)
    where[:, n] = torch.arange(R)
    count, there = torch.tensor([n], device=GPU), (keys.clone(), values.clone())
    ours = step_attention(q, k, v, keys, values, count, where)
    torch.testing.assert_close(ours, plain_step_attention(q, k, v, *there, count, where), rtol=0, atol=1e-5)
    assert torch.equal(keys, there[0])
    assert torch.equal(values, there[1])


@pytest.mark.parametrize("S", [1, 16, 33, 100])
def test_attention_to_entries_equals_the_plain_one(S: int) -> None:
    torch.manual_seed(0)
    B, R, N, K = 4, 7, 2, 32
    k, v = (part.view(B, S, N, K).transpose(1, 2) for part in torch.randn(B, S, 2 * N * K, device=GPU).chunk(2, dim=-1))
    q = torch.randn(R, 1, N, K, device=GPU).transpose(1, 2)
    is_there = torch.arange(S, device=GPU) < torch.randint(1, S + 1, (B, 1), device=GPU)
    of = torch.randint(B, (R,), device=GPU)
    plain = plain_step_cross_attention(q, k, v, is_there, of)
    torch.testing.assert_close(step_cross_attention(q, k, v, is_there, of), plain, rtol=0, atol=1e-5)
    whole = step_cross_attention(q, k.contiguous(), v.contiguous(), is_there, of)
    torch.testing.assert_close(whole, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post", "positions": "learned"},
        {"encoder": "lstm", "decoder": "lstm", "attention": "mlp", "input_feeding": True},
        {"encoder": "gru", "decoder": "gru", "attention": "dot", "n_layers": 2},
        {"encoder": "lstm", "decoder": "lstm", "attention": "none"},
    ],
)
def test_replayed_translations_are_the_usual_ones(changes: dict[str, object]) -> None:
    torch.manual_seed(0)
    config = Seq2SeqConfig.from_dict(
        {"d_model": 64, "n_heads": 2, "n_layers": 2, "tying": "all", "p_dropout": 0.0} | changes
    )
    model = seq2seq(config, 50).to(GPU)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    for B, S in ((3, 5), (8, 20), (3, 7)):
        source = torch.randint(1, 50, (B, S), device=GPU)
        mask = torch.arange(S, device=GPU) < torch.randint(1, S + 1, (B, 1), device=GPU)
        found = []
        for is_static in (False, True):
            writer = Translating(model, is_static=is_static)
            log_probs, state = writer.begin(source, mask, None, 40)
            limits = [40 - 3 * i for i in range(B)]
            found.append(beam_search(writer, log_probs, state, BeamConfig(beam=4), max_lengths=limits, stop=0))
        for plain, replayed in zip(*found, strict=True):
            assert plain[0].tokens == replayed[0].tokens
            assert abs(plain[0].log_prob - replayed[0].log_prob) < 2e-3
