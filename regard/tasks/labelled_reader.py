"""The model of a labelled task: its encoder, from scratch or trained before, what is read of it, and the rules between
their settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from regard.config import RunConfig
from regard.data.labelled_windows import N_TEXTS
from regard.errors import RegardError
from regard.mixers.config import CELLS, BagConfig
from regard.models.bert import Bert
from regard.models.bert_config import BertConfig
from regard.models.encoder_from_scratch import build_encoder
from regard.models.heads import deep_layers, pooler_layers
from regard.models.reader import LayerChoice, Reader
from regard.models.table import build_model
from regard.models.word_input import UpperLayers
from regard.models.word_input_config import MixerConfig
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.labelled_words import build_words
from regard.tasks.reader_config import EncoderConfig

FINE_TUNED_RATE = 0.1
"""The rate of an encoder that knows much already, as a share of that of one from scratch."""

BuildHead = Callable[[int, str, nn.Sequential | None], nn.Module]
"""The head that reads vectors of a width, pooled in a way where it pools, through layers of its own if any."""


def complete_reader(config: RunConfig) -> RunConfig:
    """The config with what suits the encoder in place of nulls: pooling, the piece of a word, and the rate."""
    is_pretrained, is_bert = config.folders.get("encoder_from") is not None, config.model_name == "bert"
    encoder = config.section("encoder", EncoderConfig)
    is_causal = (is_pretrained and config.model_name not in ("bert", "elmo")) or config.model_name == "gpt2"
    pool = encoder.pool or (_choose_first(config) if is_bert else "last" if is_causal else "mean")
    piece = encoder.piece or ("last" if is_causal else "first")
    config = config.with_section("encoder", encoder.replace(pool=pool, piece=piece))
    optimizer = config.optimizer.complete(config.model_name in CELLS)
    if is_pretrained and not encoder.frozen and config.optimizer.lr is None and optimizer.name == "adamw":
        assert optimizer.lr is not None
        is_large = config.model_name in ("bert", "gpt2")
        optimizer = optimizer.replace(lr=5e-5 if is_large else FINE_TUNED_RATE * optimizer.lr)
    return config.with_section("optimizer", optimizer)


def _choose_first(config: RunConfig) -> str:
    """How BERT's first token stands for a text: through a pooler, as in Hugging Face's classifiers, or as it is.

    A frozen encoder, other layers than the last and a mixer above have no counterpart there, and no pooler that fits.
    """
    encoder = config.section("encoder", EncoderConfig)
    has_own = encoder.frozen or encoder.layers != "last" or config.sections.get("mixer") is not None
    return "first" if has_own else "pooler"


def check_reader(config: RunConfig) -> None:
    """Refuse settings of the encoder that it cannot have."""
    if config.section("encoder", EncoderConfig).frozen and config.folders.get("encoder_from") is None:
        raise RegardError(
            "encoder.frozen keeps an encoder that was trained before, and none is named. Set encoder_from to a "
            "run, or leave out encoder.frozen."
        )
    _check_case(config)
    if config.section("encoder", EncoderConfig).pool == "pooler" and not isinstance(config.model, BertConfig):
        raise RegardError(
            f"encoder.pool is pooler, the layer above the first token of BERT, and the encoder is "
            f"{config.model_name}. Take mean, max, last, first or attention."
        )


def _check_case(config: RunConfig) -> None:
    """Refuse capitals that an encoder cannot be told: it has no vectors for kinds of tokens, or they are frozen."""
    encoder, model = config.section("encoder", EncoderConfig), config.model
    if not encoder.has_case:
        return
    if not isinstance(model, BertConfig) or model.n_segments != N_TEXTS:
        raise RegardError(
            f"encoder.has_case is for BERT's own form, whose vectors of segments tell the case too, and not for "
            f"'{config.model_name}'. Leave out encoder.has_case."
        )
    if encoder.frozen:
        raise RegardError(
            "encoder.has_case adds vectors that are learned, and encoder.frozen keeps them from it. Leave out one."
        )


def build_reader(
    config: RunConfig, vocab_size: int, build_head: BuildHead, *, n_segments: int, has_two_texts: bool, pools: bool
) -> Reader:
    """The reader with fresh weights. `n_segments`: kinds of tokens it is told; `pools`: its head reads one vector."""
    chosen = config.section("encoder", EncoderConfig)
    layers, words, mixer = None, build_words(config), config.section_or_none("mixer", MixerConfig)
    if config.folders.get("encoder_from") is not None:
        encoder = build_model(config.model_name, config.model, vocab_size)
    else:
        encoder = build_encoder(
            config.model_name, config.model, vocab_size,
            has_segments=has_two_texts, is_bidirectional=chosen.is_bidirectional, words=words,
        )  # fmt: skip
        if isinstance(config.model, BagConfig):
            own = config.model
            layers = deep_layers(own.d_model, own.d_hidden, own.n_layers, own.p_dropout)
    if chosen.has_case and isinstance(encoder, Bert):
        encoder.widen_segments(n_segments)
    choice = LayerChoice(chosen.layers, encoder.n_layers, encoder.d_model)
    above = None if mixer is None else UpperLayers(mixer, choice.d_out, words)
    d_out = choice.d_out if above is None else above.d_out
    if pools and chosen.pool == "pooler":
        assert isinstance(config.model, BertConfig), "checked before"
        layers = pooler_layers(d_out, "relu" if config.model.family == "distilbert" else "tanh")
    head = build_head(d_out, chosen.pool or "mean", layers)
    return Reader(encoder, choice, head, chosen.frozen, above)


def begin_encoder(config: RunConfig, model: Reader, start: InitialWeights, *, n_segments: int, pools: bool) -> None:
    """Give the encoder the weights it starts from, and what of them belongs to the head."""
    encoder: Any = model.encoder
    chosen = config.section("encoder", EncoderConfig)
    if chosen.has_case:
        encoder.segments = nn.Parameter(encoder.segments[:N_TEXTS].detach().clone())
    start.load_into(encoder)
    if chosen.has_case:
        encoder.widen_segments(n_segments)
    if pools and chosen.pool == "pooler":
        model.begin_pooler()
