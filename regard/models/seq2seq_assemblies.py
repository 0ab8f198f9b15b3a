"""Encoder-decoder models of every kind, by config alone."""

from __future__ import annotations

import math

from regard.errors import RegardError
from regard.layers.bridge import Bridge
from regard.mixers.bag import BagEncoder
from regard.mixers.config import CELLS
from regard.mixers.convolution import ConvolutionEncoder
from regard.mixers.convolution_decoder import ConvolutionDecoder
from regard.mixers.mixer import Decoder, Encoder
from regard.mixers.recurrent_decoder import RecurrentDecoder
from regard.mixers.recurrent_encoder import RecurrentEncoder
from regard.mixers.transformer_decoder import TransformerDecoder
from regard.mixers.transformer_encoder import TransformerEncoder, initialise_xavier
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig


def seq2seq(config: Seq2SeqConfig, vocab_size: int, source_vocab_size: int | None = None) -> Seq2Seq:
    """The model of `config`; `source_vocab_size` None: source and target share one vocabulary."""
    n_source = vocab_size if source_vocab_size is None else source_vocab_size
    is_shared = config.tying == "all"
    if is_shared and n_source != vocab_size:
        raise RegardError(
            f"tying is all and the vocabularies differ: {n_source} tokens of the source, {vocab_size} of the target. "
            "Use one tokenizer for both, or set tying to target."
        )
    encoder = build_encoder(config)
    bridge = None
    if config.decoder in CELLS:
        has_cell = config.decoder == "lstm"
        bridge = Bridge(config.d_model, max(1, encoder.n_ends), config.depths[1], has_cell)
    return Seq2Seq(
        n_source, encoder, conditional_language_model(config, vocab_size), bridge,
        std=None if is_shared else embedding_spread(config.encoder, config),
    )  # fmt: skip


def vaswani(config: VaswaniConfig, vocab_size: int, source_vocab_size: int | None = None) -> Seq2Seq:
    """The Transformer in one of its two published sizes."""
    return seq2seq(config.seq2seq(), vocab_size, source_vocab_size)


def conditional_language_model(config: Seq2SeqConfig, vocab_size: int) -> ConditionalLanguageModel:
    """The side that writes, for whatever source: what `config` says of encoders is not asked.

    Recurrent networks have an output bias and drop from the embedded words; Transformers, as published, have none
    unless `has_output_bias`, and drop from the sum of word and position, as convolutions do from what they read.
    """
    is_recurrent = config.decoder in CELLS
    return ConditionalLanguageModel(
        vocab_size,
        config.d_model,
        build_decoder(config),
        p_dropout=config.p_dropout if is_recurrent else 0.0,
        is_tied=config.tying != "none",
        has_bias=is_recurrent or config.has_output_bias,
        std=embedding_spread(config.decoder, config),
        copies=config.copies,
    )


def build_encoder(config: Seq2SeqConfig) -> Encoder:
    D, L, p = config.d_model, config.depths[0], config.p_dropout
    if config.encoder in CELLS:
        return RecurrentEncoder(config.encoder, D, L, config.is_bidirectional, p)
    if config.encoder == "convolution":
        return ConvolutionEncoder(D, L, p)
    if config.encoder == "bag":
        return BagEncoder(p)
    encoder = TransformerEncoder(config.transformer(L))
    initialise_xavier(encoder)
    return encoder


def build_decoder(config: Seq2SeqConfig) -> Decoder:
    D, L = config.d_model, config.depths[1]
    if config.decoder in CELLS:
        return RecurrentDecoder(config.decoder, D, L, config.attention, config.input_feeding, config.p_dropout)
    if config.decoder == "convolution":
        convolution = ConvolutionDecoder(D, L, config.p_dropout, gives_weights=config.copies)
        for block in convolution.layers:
            initialise_xavier(block.cross_attention)
        return convolution
    decoder = TransformerDecoder(config.transformer(L), gives_weights=config.copies)
    initialise_xavier(decoder)
    return decoder


def embedding_spread(kind: str, config: Seq2SeqConfig) -> float:
    """As in the language models: gates need loud words, and sinusoids of size one want words of size one beside them.

    `SinusoidalPositions` multiply by √D, so words of size one are 1/√D here.
    """
    if kind in CELLS or kind == "bag":
        return 0.3
    if kind == "transformer" and config.positions == "sinusoidal":
        return 1 / math.sqrt(config.d_model)
    return 0.02 * math.sqrt(768 / config.d_model)
