"""Our Transformer against a tiny random Hugging Face GPT-2, weights copied across."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.layers.record import Record
from regard.mixers.config import TransformerConfig
from regard.models.language_model import LanguageModel
from regard.models.next_token import as_next_token
from regard.models.table import build_model

transformers = pytest.importorskip("transformers")
EXACT = {"rtol": 0, "atol": 1e-12}
V, D, N, L, M = 23, 12, 3, 2, 16


@pytest.fixture(scope="module")
def theirs() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=M, n_embd=D, n_layer=L, n_head=N, attn_implementation="eager",
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


@pytest.fixture(scope="module")
def ours(theirs: Any) -> LanguageModel:
    config = TransformerConfig(d_model=D, n_layers=L, n_heads=N, max_context=M)
    model = build_model("transformer", config, V).double().eval()
    model.load_state_dict(renamed(theirs.transformer.state_dict()))
    return model


def renamed(gpt2: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """GPT-2's names and its (in, out) matrices as ours."""
    names = {
        "wte.weight": "embedding", "wpe.weight": "mixer.positions.table", "ln_f": "mixer.norm", "h.": "mixer.layers.",
        "ln_1": "norm_attention", "ln_2": "norm_feed_forward", "attn.c_attn": "attention.qkv",
        "attn.c_proj": "attention.out", "mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.out",
    }  # fmt: skip
    result = {}
    for name, weight in gpt2.items():
        is_transposed = ".c_" in name and name.endswith("weight")
        for old, new in names.items():
            name = name.replace(old, new)
        result[name] = weight.t() if is_transposed else weight
    return result


def their_loss(theirs: Any, ids: torch.Tensor) -> torch.Tensor:
    """The model's own loss is in float32 whatever its weights are, so it is taken from the logits."""
    logits = theirs(ids, attention_mask=torch.ones_like(ids)).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@pytest.mark.parametrize("is_plain", [False, True], ids=["fused", "plain"])
def test_logits_equal_gpt_2s(ours: LanguageModel, theirs: Any, is_plain: bool) -> None:
    ids = torch.randint(V, (4, M))
    logits, _ = ours(ids, None, Record() if is_plain else None)
    torch.testing.assert_close(logits, theirs(ids).logits, **EXACT)


def test_attention_weights_equal_gpt_2s(ours: LanguageModel, theirs: Any) -> None:
    ids, record = torch.randint(V, (2, M)), Record()
    ours(ids, None, record)
    for layer, weights in enumerate(theirs(ids, output_attentions=True).attentions):
        torch.testing.assert_close(record[f"layers.{layer}.attention"], weights, **EXACT)


def test_gradients_equal_gpt_2s(ours: LanguageModel, theirs: Any) -> None:
    ids = torch.randint(V, (2, M))
    theirs.zero_grad()
    ours.zero_grad()
    nats, n_tokens, _ = ours.loss(ids[:, :-1], ids[:, 1:], torch.ones(2, M - 1, dtype=torch.bool))
    (nats / n_tokens).backward()
    their_loss(theirs, ids).backward()
    expected = renamed({name: p.grad for name, p in theirs.transformer.named_parameters()})
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], **EXACT)


def test_greedy_text_equals_gpt_2s(ours: LanguageModel, theirs: Any) -> None:
    prompt = torch.randint(1, V, (1, 3))
    ends = theirs.generation_config
    ends.eos_token_id = None
    whole = theirs.generate(
        torch.cat([torch.zeros(1, 1, dtype=torch.long), prompt], dim=1),
        attention_mask=torch.ones(1, 4, dtype=torch.long), do_sample=False, max_new_tokens=12,
    )  # fmt: skip
    (text,) = generate_all(as_next_token(ours), prompt, SamplingConfig(temperature=0.0, max_tokens=12))
    assert text == whole[0, 4:].tolist()


def test_scores_equal_gpt_2s_loss(ours: LanguageModel, theirs: Any) -> None:
    ids = np.random.default_rng(0).integers(0, V, M - 1)
    whole = torch.tensor([[0, *ids.tolist()]])
    expected = their_loss(theirs, whole).item()
    assert abs(as_next_token(ours).nats(ids).mean() - expected) < 1e-12
