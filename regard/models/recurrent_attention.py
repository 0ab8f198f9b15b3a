"""Recurrent language models that look back: attention to past states, and copying from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regard.errors import RegardError
from regard.layers.copy_attention import CopyAttention
from regard.mixers.config import GRUConfig, LSTMConfig, PointerConfig, RecurrentAttentionConfig, RNNConfig
from regard.mixers.recurrent import Recurrent
from regard.mixers.recurrent_attention import RecurrentAttention
from regard.models import assemblies
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel

_CELLS: dict[str, tuple[type[RNNConfig | GRUConfig | LSTMConfig], Callable[[Any, int], LanguageModel]]] = {
    "rnn": (RNNConfig, assemblies.rnn),
    "gru": (GRUConfig, assemblies.gru),
    "lstm": (LSTMConfig, assemblies.lstm),
}


def rnn_attention(config: RecurrentAttentionConfig, vocab_size: int) -> LanguageModel:
    """The language model of `cell`, with attention between its recurrent layers and its head."""
    model = recurrent_language_model(config, vocab_size)
    assert isinstance(model.mixer, Recurrent)
    model.mixer = RecurrentAttention(model.mixer, config.d_model, config.score, config.max_memory)
    return model


def pointer(config: PointerConfig, vocab_size: int) -> PointerModel:
    """The language model of `cell`, as it is, and copying beside it."""
    n_vocab = vocab_size if config.n_vocab is None else config.n_vocab
    if n_vocab > vocab_size:
        raise RegardError(
            f"model.n_vocab is {n_vocab} and the tokenizer has {vocab_size} tokens. Set it to {vocab_size} or less, or "
            "leave it out: null is all of them."
        )
    copy = CopyAttention(config.d_model, config.score, config.max_memory, config.mix, config.p_vocabulary)
    return PointerModel(recurrent_language_model(config, n_vocab), copy, vocab_size, config.copies)


def recurrent_language_model(config: RecurrentAttentionConfig | PointerConfig, vocab_size: int) -> LanguageModel:
    """The `rnn`, `gru` or `lstm` of the model table, with what `config` has in common with its settings."""
    kind, build = _CELLS[config.cell]
    shared = {name: value for name, value in config.to_dict().items() if name in kind().to_dict()}
    return build(kind.from_dict(shared), vocab_size)
