"""A model that reads a text and answers about it: an encoder, a choice of its layers, and a head."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import RegardError
from regard.layers.scalar_mix import ScalarMix
from regard.layers.taps import Taps, scope
from regard.models.elmo import tell_words
from regard.models.encoder import Encoder
from regard.models.encoder_from_scratch import TextEncoder
from regard.models.heads import States
from regard.models.word_input import UpperLayers, WordInput
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer


class LayerChoice(nn.Module):
    """One vector a token from those that an encoder's layers give: one of them, a sum, four side by side, or a mix.

    `first` is the first layer above the embeddings, `sum` that of all layers above them; `mix` is learned and has the
    embeddings too (ELMo; Peters et al. 2018).
    """

    def __init__(self, kind: str, n_layers: int, d_model: int) -> None:
        super().__init__()
        needed = {"second-to-last": 2, "sum-last-four": 4, "concat-last-four": 4}.get(kind, 1)
        if n_layers < needed:
            raise RegardError(
                f"encoder.layers is {kind}, which takes {needed} layers, and the encoder has {n_layers}. Take last, "
                "sum or mix."
            )
        self.kind = kind
        self.mix = ScalarMix(n_layers + 1) if kind == "mix" else None
        self.d_out = 4 * d_model if kind == "concat-last-four" else d_model

    def forward(self, layers: Sequence[Float[Tensor, "B T D"]]) -> Float[Tensor, "B T E"]:
        if self.mix is not None:
            return self.mix(layers)  # type: ignore[no-any-return]
        if self.kind == "concat-last-four":
            return torch.cat(tuple(layers[-4:]), dim=-1)
        if self.kind in ("sum", "sum-last-four"):
            return torch.stack(tuple(layers[1:] if self.kind == "sum" else layers[-4:])).sum(dim=0)
        return layers[{"last": -1, "first": 1, "second-to-last": -2}[self.kind]]

    def describe_mix(self) -> str:
        """What a learned mix came to, in a sentence; empty where there is none."""
        if self.mix is None:
            return ""
        shares = self.mix.shares.tolist()
        names = ["the embeddings", *(f"layer {i}" for i in range(1, len(shares)))]
        parts = ", ".join(f"{share:.2f} of {name}" for share, name in zip(shares, names, strict=True))
        return f"The head reads {self.mix.scale.item():.2f} times a mix of layers that was learned: {parts}."


class Reader(nn.Module):
    """answer = head(choose(encoder(x))), or head(mixer(choose(encoder(x)))) with layers between the two

    A frozen encoder is never trained: it has no gradient and drops nothing.
    """

    def __init__(
        self, encoder: Any, choice: LayerChoice, head: Any, is_frozen: bool = False, mixer: UpperLayers | None = None
    ) -> None:
        super().__init__()
        assert isinstance(encoder, Encoder), "what reads texts"
        self.encoder, self.choice, self.mixer, self.head, self.is_frozen = encoder, choice, mixer, head, is_frozen
        if is_frozen:
            encoder.requires_grad_(False)  # type: ignore[attr-defined]

    @torch.no_grad()
    def begin_pooler(self) -> None:
        """Let the layer between BERT's first token and the answer begin as its own, where it has one as wide."""
        encoder: Any = self.encoder
        layer = self.head.answer.hidden[0]
        if encoder.pooler is not None and encoder.pooler.weight.shape == layer.weight.shape:
            layer.load_state_dict(encoder.pooler.state_dict())

    def train(self, mode: bool = True) -> Reader:
        super().train(mode)
        if self.is_frozen:
            self.encoder.eval()  # type: ignore[attr-defined]
        return self

    def states(
        self,
        tokens: Int[Tensor, "B W T"],
        mask: Bool[Tensor, "B W T"],
        keep: Bool[Tensor, "B W T"],
        places: Int[Tensor, "B N"],
        segments: Int[Tensor, "B W T"] | None = None,
        taps: Taps | None = None,
    ) -> States:
        """What the head reads. Windows that a text does not have are not computed, and are zero.

        Taps have a row for each window that is computed. They see the gradient of a frozen encoder too.
        """
        B, W, T = tokens.shape
        rows = slice(None) if W == 1 else mask.any(dim=-1).flatten().nonzero()[:, 0]
        ids, is_there = tokens.flatten(0, 1)[rows], mask.flatten(0, 1)[rows]  # (R, T)
        kinds = None if segments is None else segments.flatten(0, 1)[rows]
        with torch.no_grad() if self.is_frozen and taps is None else nullcontext():
            layers = self.encoder.encode(ids, is_there, kinds, taps)
        h = self.choice(layers)  # (R, T, E)
        if self.mixer is not None:
            h = self.mixer(h, ids.where(is_there, 0), is_there, scope(taps, "mixer"))
        if taps is not None:
            h = taps.keep("hidden", h)
        if W > 1:
            h = h.new_zeros(B * W, T, h.shape[-1]).index_copy(0, rows, h)
        return States(h.view(B, W, T, -1), mask, keep, places)

    def forward(
        self,
        tokens: Int[Tensor, "B W T"],
        mask: Bool[Tensor, "B W T"],
        keep: Bool[Tensor, "B W T"],
        places: Int[Tensor, "B N"],
        segments: Int[Tensor, "B W T"] | None = None,
        taps: Taps | None = None,
    ) -> Tensor:
        outputs: Tensor = self.head(self.states(tokens, mask, keep, places, segments, taps), taps)
        return outputs if taps is None else taps.keep("logits", outputs)

    @property
    def words(self) -> WordInput | None:
        """The vectors of words that the task has of its own; None: it has none."""
        if self.mixer is not None:
            return self.mixer.words
        return self.encoder.words if isinstance(self.encoder, TextEncoder) else None

    def tell_words(self, tokenizer: Tokenizer) -> Tokenizer | ExtendedVocabulary:
        """What texts are encoded with: where words are read by their characters, none of them is unknown."""
        vocabulary = tell_words(self.encoder, tokenizer)
        return vocabulary if self.words is None else self.words.hear_of(vocabulary)

    @property
    def max_positions(self) -> int | None:
        return self.encoder.max_positions

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops(self, n_tokens: int) -> int:
        """Forward cost of a text of so many tokens."""
        between = 0 if self.mixer is None else self.mixer.flops(n_tokens)
        return int(self.encoder.flops(n_tokens) + between + self.head.flops(n_tokens))
