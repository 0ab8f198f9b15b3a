"""A language model of every kind: the mixer of its config between an embedding and a head."""

from __future__ import annotations

from regard.mixers.attention import self_attention
from regard.mixers.bag import Bag
from regard.mixers.config import (
    AttentionConfig,
    BagConfig,
    GRUConfig,
    LSTMConfig,
    RNNConfig,
    TransformerConfig,
    WindowConfig,
)
from regard.mixers.mixer import Mixer
from regard.mixers.recurrent import gru as gru_mixer
from regard.mixers.recurrent import lstm as lstm_mixer
from regard.mixers.recurrent import rnn as rnn_mixer
from regard.mixers.transformer import transformer as transformer_mixer
from regard.mixers.window import Window
from regard.models.language_model import LanguageModel


def bag(config: BagConfig, vocab_size: int) -> LanguageModel:
    return LanguageModel(vocab_size, config.d_model, Bag(config), config.p_dropout, config.tie_embeddings)


def window(config: WindowConfig, vocab_size: int) -> LanguageModel:
    return LanguageModel(vocab_size, config.d_model, Window(config), config.p_dropout, config.tie_embeddings)


def rnn(config: RNNConfig, vocab_size: int) -> LanguageModel:
    return LanguageModel(vocab_size, config.d_model, rnn_mixer(config), config.p_dropout, config.tie_embeddings)


def gru(config: GRUConfig, vocab_size: int) -> LanguageModel:
    return LanguageModel(vocab_size, config.d_model, gru_mixer(config), config.p_dropout, config.tie_embeddings)


def lstm(config: LSTMConfig, vocab_size: int) -> LanguageModel:
    return LanguageModel(vocab_size, config.d_model, lstm_mixer(config), config.p_dropout, config.tie_embeddings)


def attention(config: AttentionConfig, vocab_size: int) -> LanguageModel:
    return _attending(config, self_attention(config), vocab_size)


def transformer(config: TransformerConfig, vocab_size: int) -> LanguageModel:
    return _attending(config, transformer_mixer(config), vocab_size)


def _attending(config: AttentionConfig | TransformerConfig, mixer: Mixer, vocab_size: int) -> LanguageModel:
    """As GPT-2: no bias, and small embeddings. The mixer drops from the sum of embedding and position, so not here.

    Sinusoidal positions are of size one and their embeddings are scaled by √D, so these start at 1/√D.
    """
    std = None if config.positions == "sinusoidal" else 0.02
    return LanguageModel(
        vocab_size, config.d_model, mixer, tie_embeddings=config.tie_embeddings, has_bias=False, std=std
    )
