"""Encoders that a task trains from its own data: an embedding, and a mixer that sees both sides."""

from __future__ import annotations

import math
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.layers.taps import Taps, keep
from regard.mixers.bag import BagEncoder
from regard.mixers.config import CELLS, BagConfig, ConvolutionConfig, RecurrentConfig, TransformerConfig
from regard.mixers.convolution import ConvolutionEncoder
from regard.mixers.recurrent_encoder import RecurrentEncoder
from regard.mixers.transformer_encoder import TransformerEncoder, initialise_xavier
from regard.models.encoder import Encoder
from regard.models.table import build_model
from regard.models.word_input import WordInput, build_projection
from regard.settings import Settings

FROM_SCRATCH = ("bag", *CELLS, "convolution", "transformer")
"""Models that read both sides where a task has the whole text; as language models they see the past alone."""

LayeredEncoder = BagEncoder | RecurrentEncoder | ConvolutionEncoder | TransformerEncoder


class TextEncoder(nn.Module):
    """x = E w + S s,   h^0 = x,   h^l = layer_l(h^{l-1});  w are the tokens, s the text of a pair that each is of.

    With `words`, x = W dropout([word vector; characters]) + b + S s. What is dropped is dropped before W, which could
    else put it back together from the rest (Lample et al. 2016).
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        mixer: LayeredEncoder,
        std: float,
        has_segments: bool = False,
        words: WordInput | None = None,
        p_dropout: float = 0.0,
    ) -> None:
        """`std` is the spread of E at the start, `p_dropout` what is dropped of words."""
        super().__init__()
        self.d_model, self.words, self.dropout = d_model, words, nn.Dropout(p_dropout)
        self.embedding = nn.Parameter(torch.empty(vocab_size, d_model)) if words is None else None  # E
        self.project = None if words is None else build_projection(words.d_out, d_model)  # W, b
        self.segments = nn.Parameter(torch.zeros(2, d_model)) if has_segments else None  # S
        self.mixer = mixer
        self.max_positions = mixer.max_context
        self.n_layers = 1 if isinstance(mixer, BagEncoder) else len(mixer.layers)
        if self.embedding is not None:
            nn.init.normal_(self.embedding, std=std)
        if self.segments is not None:
            nn.init.normal_(self.segments, std=std)

    def encode(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        taps: Taps | None = None,
    ) -> tuple[Float[Tensor, "B T D"], ...]:
        """States by layer: what the first layer reads, then what each gives. Padding reaches no real place."""
        x = self._embed(tokens.where(mask, 0))
        if self.segments is not None and segments is not None:
            x = x + functional.embedding(segments, self.segments)
        return self.mixer.read_layers(keep(taps, "embedding", x), mask, taps)

    def _embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        if self.words is None or self.project is None:
            assert self.embedding is not None
            return functional.embedding(tokens, self.embedding)
        return self.project(self.dropout(self.words(tokens)))  # type: ignore[no-any-return]

    def flops(self, n_tokens: int) -> int:
        """Forward cost of a text of so many tokens."""
        own = 0
        if self.words is not None and self.project is not None:
            own = self.words.flops() + 2 * self.project.in_features * self.project.out_features
        return n_tokens * own + self.mixer.flops(n_tokens)


def build_encoder(
    name: str,
    config: Settings,
    vocab_size: int,
    *,
    has_segments: bool = False,
    is_bidirectional: bool = True,
    words: WordInput | None = None,
) -> Encoder:
    """The encoder called `name`, with fresh weights.

    bag, rnn, gru, lstm, convolution and transformer see both sides, rnn, gru and lstm one side alone where
    `is_bidirectional` is false, and read `words` where there are any; any other model is the encoder that it was
    pre-trained as.
    """
    if name not in FROM_SCRATCH:
        return cast(Encoder, build_model(name, config, vocab_size))
    mixer, std = _build_mixer(name, config, is_bidirectional, drops_input=words is None)
    plain = config.to_dict()
    return TextEncoder(vocab_size, plain["d_model"], mixer, std, has_segments, words, plain["p_dropout"])


def _build_mixer(
    name: str, config: Settings, is_bidirectional: bool, drops_input: bool
) -> tuple[LayeredEncoder, float]:
    """The mixer, and the spread that embeddings start with: as in the language models, gates need loud words."""
    if isinstance(config, BagConfig):
        return BagEncoder(config.p_dropout), 0.1
    if isinstance(config, RecurrentConfig):
        D = config.d_model
        if is_bidirectional and D % 2:
            raise RegardError(f"model.d_model is {D}, and each direction takes half of it. Make it {D + 1}.")
        return RecurrentEncoder(name, D, config.n_layers, is_bidirectional, config.p_dropout, drops_input), 0.3
    std = 0.02 * math.sqrt(768 / config.to_dict()["d_model"])
    if isinstance(config, ConvolutionConfig):
        return ConvolutionEncoder(config.d_model, config.n_layers, config.p_dropout), std
    assert isinstance(config, TransformerConfig)
    encoder = TransformerEncoder(config)
    initialise_xavier(encoder)
    return encoder, 1 / math.sqrt(config.d_model) if config.positions == "sinusoidal" else std
