"""Recurrent models that look back: the same recurrent network underneath, and where they look."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.mixers.config import PointerConfig
from regard.mixers.recurrent_attention import RecurrentAttention
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel
from regard.models.table import build_model
from regard.run.folder import load_config

RECIPES = Path(__file__).parents[3] / "recipes"


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_pointers_language_model_is_the_one_of_the_table(tiny_config: Callable, cell: str) -> None:
    torch.manual_seed(0)
    pointer = build_model("pointer", tiny_config("pointer", cell=cell), 11)
    plain = build_model(cell, tiny_config(cell, d_hidden=None), 11)
    assert isinstance(pointer, PointerModel)
    shapes = {name: tensor.shape for name, tensor in plain.state_dict().items()}
    assert {name: tensor.shape for name, tensor in pointer.language_model.state_dict().items()} == shapes


def test_the_wikitext2_recipes_differ_by_the_copying_alone() -> None:
    plain, copying = (load_config(RECIPES / f"wikitext2-{name}.yaml").to_dict() for name in ("lstm", "pointer"))
    model, shared = copying.pop("model"), plain.pop("model")
    assert copying == plain
    assert {key: model[key] for key in model if key in shared and key != "name"} == {
        key: shared[key] for key in shared if key in model and key != "name"
    }
    left_out = {key: value for key, value in shared.items() if key not in model}
    assert set(left_out.values()) <= {None, 0.0}, "what the pointer has no setting for is not used"


def test_dropout_settings_reach_the_recurrent_network(tiny_config: Callable) -> None:
    changes = {"p_dropout": 0.3, "is_variational": True, "p_embedding": 0.2}
    for name in ("rnn-attention", "pointer"):
        model = build_model(name, tiny_config(name, **changes), 11)
        below = model.language_model if isinstance(model, PointerModel) else model
        assert (below.regularization.p_output, below.regularization.p_embedding) == (0.3, 0.2)
        assert below.regularization.is_variational


def test_without_a_past_the_context_is_zero_and_attention_starts_as_no_attention(tiny_config: Callable) -> None:
    torch.manual_seed(0)
    model = build_model("rnn-attention", tiny_config("rnn-attention"), 11).double()
    assert isinstance(model, LanguageModel)
    assert isinstance(model.mixer, RecurrentAttention)
    ids = torch.tensor([[3]])
    record = Taps()
    y, _ = model.hidden(ids, None, record)
    torch.testing.assert_close(y, record["layers.1.hidden"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["rnn-attention", "pointer"])
def test_the_map_is_square_and_only_the_past_is_seen(tiny_model: Callable, name: str) -> None:
    record = Taps()
    tiny_model(name, max_memory=3)(torch.randint(11, (2, 6)), None, record)
    weights = record["layers.2.attention"]
    assert weights.shape == (2, 1, 6, 6)
    is_seen = torch.ones(6, 6).tril(-1).triu(-3).bool()
    assert (weights[:, 0, is_seen] > 0).all()
    assert (weights[:, 0, ~is_seen] == 0).all()


def test_with_a_state_the_map_shows_the_memory_too(tiny_model: Callable) -> None:
    model, record = tiny_model("rnn-attention", max_memory=3), Taps()
    _, state = model(torch.randint(11, (1, 5)))
    model(torch.randint(11, (1, 2)), state, record)
    weights = record["layers.2.attention"][0, 0]
    assert weights.shape == (2, 3 + 2)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, dtype=torch.float64))


def test_the_head_reads_states_with_dropout_and_the_memory_keeps_those_without(tiny_config: Callable) -> None:
    torch.manual_seed(0)
    model = build_model("pointer", tiny_config("pointer", p_dropout=0.5, n_layers=1), 11).train()
    h, (_, memory, _) = model.hidden(torch.randint(11, (3, 4)))
    read = model.drop_output(h).h
    is_dropped = read == 0
    assert 0 < is_dropped.float().mean() < 1
    torch.testing.assert_close(read, 2 * memory.masked_fill(is_dropped, 0))


def test_a_vocabulary_larger_than_the_tokenizers_is_refused(tiny_config: Callable) -> None:
    sentence = (
        r"model\.n_vocab is 12 and the tokenizer has 11 tokens\. Set it to 11 or less, or leave it out: null is all"
    )
    with pytest.raises(RegardError, match=sentence):
        build_model("pointer", tiny_config("pointer", n_vocab=12), 11)
    build_model("pointer", tiny_config("pointer", n_vocab=11), 11)


@pytest.mark.parametrize("mix", ["learned", "sentinel"])
def test_a_share_of_the_vocabulary_is_refused_where_it_is_learned(mix: str) -> None:
    sentence = f"p_vocabulary is 0.5 and mix is {mix}, which learns the vocabulary's share. Leave out p_vocabulary, or"
    with pytest.raises(RegardError, match=sentence):
        PointerConfig(mix=mix, p_vocabulary=0.5)
    assert PointerConfig(mix="fixed", p_vocabulary=0.5).p_vocabulary == 0.5


def test_a_pointer_of_low_precision_still_sums_to_one(tiny_config: Callable) -> None:
    """In bfloat16 a logarithm has three digits, and the sum over 5,000 words would be off by 0.004."""
    torch.manual_seed(0)
    model = build_model("pointer", tiny_config("pointer"), 5000).bfloat16().eval()
    with torch.inference_mode():
        h, _ = model.hidden(torch.tensor([[3, 4, 5, 3]]))
        total = model._log_probs(h, model.output_weight).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-4)


@torch.inference_mode()
def test_a_step_of_a_model_that_copies_equals_reading_on(tiny_model: Callable) -> None:
    model, ids = tiny_model("pointer", max_memory=3).double().eval(), torch.randint(11, (2, 6))
    _, state = model.hidden(ids[:, :-1])
    read, after = model.hidden(ids[:, -1:], state)
    stepped, stepped_after = model.step(ids[:, -1:], state)
    padded = torch.nn.functional.pad(model.output_weight, (0, 0, 0, 5))  # as a captured step has it
    torch.testing.assert_close(model.step_log_probs(stepped, padded), model.log_probs(read), rtol=0, atol=1e-12)
    torch.testing.assert_close(stepped_after[1:], after[1:], rtol=0, atol=1e-12)
