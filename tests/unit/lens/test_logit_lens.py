"""The last layer, read out, is what the model itself says; the others are read by the same norm and head."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.lens.logit_lens import read_out
from regard.lens.trace import trace_text
from regard.mixers.config import ConvolutionConfig, LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TEXT = "the cat sat\nthe dog sat\n"
CONFIGS: dict[str, Any] = {
    "lstm": LSTMConfig(d_model=8, n_layers=2),
    "convolution": ConvolutionConfig(d_model=8, n_layers=2),
    "transformer": TransformerConfig(d_model=8, n_layers=2, n_heads=2, max_context=8),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_last_layer_says_what_the_model_says(name: str) -> None:
    torch.manual_seed(0)
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT])
    model = build_model(name, CONFIGS[name], words.vocab_size).double()
    trace = trace_text(model, words, "the cat sat")
    found = read_out(model, trace)
    assert list(found) == ["embedding", "layers.0", "layers.1"]
    own = torch.from_numpy(trace["logits"]).log_softmax(dim=-1).numpy()
    np.testing.assert_allclose(found["layers.1"], own, rtol=0, atol=1e-10)
    assert np.abs(found["layers.0"] - own).max() > 1e-3
    np.testing.assert_allclose(read_out(model, trace, rows=[2])["layers.1"], own[[2]], rtol=0, atol=1e-10)


def test_what_predicts_no_tokens_has_nothing_to_read_out() -> None:
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT])
    model = build_model("lstm", CONFIGS["lstm"], words.vocab_size)
    trace = trace_text(model, words, "the cat sat")
    with pytest.raises(RegardError, match="A Linear predicts no token"):
        read_out(torch.nn.Linear(2, 2), trace)
