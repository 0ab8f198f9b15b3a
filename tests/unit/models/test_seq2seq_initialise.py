"""A decoder that begins as a language model."""

from collections.abc import Callable

import pytest
import torch
from tiny_seq2seq import V, pairs, tiny_seq2seq

from regard.errors import RegardError
from regard.models.initialise_from import initialise_from
from regard.models.language_model import LanguageModel

Tiny = Callable[..., LanguageModel]
LSTM = {"encoder": "gru", "decoder": "lstm", "attention": "none"}


@pytest.mark.parametrize("is_tied", [True, False])
def test_an_lstm_with_nothing_of_the_source_writes_as_the_language_model(tiny_model: Tiny, is_tied: bool) -> None:
    lm = tiny_model("lstm", d_hidden=8, tie_embeddings=is_tied, seed=5)
    model = tiny_seq2seq(tying="target" if is_tied else "none", **LSTM)
    initialise_from(model, lm)
    batch = pairs(0, [3, 2], [4, 4])
    source = model.encode(batch.source, batch.mask)._replace(start=())
    torch.testing.assert_close(
        model.target(batch.inputs, source), lm(batch.inputs)[0].log_softmax(-1), rtol=0, atol=1e-10
    )


def test_a_transformer_whose_cross_attention_is_silent_writes_as_the_language_model(tiny_model: Tiny) -> None:
    lm = tiny_model("transformer", seed=5, max_context=9)
    model = tiny_seq2seq(positions="learned", activation="gelu")
    names = initialise_from(model, lm)
    assert {"embedding", "positions.table", "layers.1.attention.qkv.weight", "norm.weight"} <= set(names)
    assert not any("cross" in name for name in names)
    for block in model.target.decoder.layers:
        torch.nn.init.zeros_(block.cross_attention.out.weight)
        torch.nn.init.zeros_(block.cross_attention.out.bias)
    batch = pairs(0, [3, 2], [4, 4])
    expected = lm(batch.inputs)[0].log_softmax(-1)
    torch.testing.assert_close(model(batch.source, batch.mask, batch.inputs), expected, rtol=0, atol=1e-10)


REFUSED = [
    ("lstm", {"d_hidden": 8, "vocab_size": V + 1}, LSTM, "embedding is 11 x 8 in the decoder and 12 x 8"),
    ("lstm", {"d_hidden": 12}, LSTM, "layers.0.kernel.weight_ih_l0 is 32 x 8 in the decoder and 48 x 8"),
    (
        "lstm",
        {"d_model": 6, "d_hidden": 6, "n_layers": 1},
        LSTM,
        "n_layers is 2 in the decoder and 1 in the language model, d_model is 8 in the decoder and 6 in the",
    ),
    ("gru", {"d_hidden": 8}, LSTM, "the kind of layer is lstm in the decoder and gru"),
    (
        "lstm",
        {"d_hidden": 8, "tie_embeddings": False},
        LSTM,
        "the head is tied (tying: target) in the decoder and a matrix of its own (tying: none)",
    ),
    ("transformer", {}, LSTM, "the kind of layer is lstm in the decoder and transformer"),
    ("attention", {}, {}, "the kind of layer is transformer in the decoder and AttentionStack"),
    (
        "transformer",
        {"n_heads": 4, "d_ff": 20, "norm": "post"},
        {},
        "n_heads is 2 in the decoder and 4 in the language model, d_ff is 12 in the decoder and 20 in the language "
        "model, norm is pre in the decoder and post in the language model, positions is sinusoidal in the decoder and "
        "learned in the language model, activation is relu in the decoder and gelu in the language model. Use one",
    ),
    (
        "transformer",
        {},
        {"positions": "learned", "activation": "gelu"},
        "max_context is 9 in the decoder and 7",
    ),
    (
        "lstm",
        {"d_hidden": 8},
        LSTM | {"attention": "dot", "input_feeding": True},
        "layers.0.kernel.weight_ih_l0 is 32 x 16 in the decoder and 32 x 8 in the language model. Use one tokenizer "
        "for both and the same settings, without input_feeding",
    ),
]


@pytest.mark.parametrize(("kind", "of_language_model", "of_decoder", "message"), REFUSED)
def test_what_does_not_fit_is_named_and_nothing_is_copied(
    tiny_model: Tiny, kind: str, of_language_model: dict[str, object], of_decoder: dict[str, object], message: str
) -> None:
    lm, model = tiny_model(kind, **of_language_model), tiny_seq2seq(seed=1, **of_decoder)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(RegardError) as refusal:
        initialise_from(model, lm)
    assert message in str(refusal.value)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
