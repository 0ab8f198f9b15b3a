"""The settings of encoder-decoder models. Importing this file does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from regard.errors import RegardError
from regard.mixers.config import ACTIVATIONS, CELLS, DROPOUT, POSITIONS, SCORES, TransformerConfig, check_heads
from regard.settings import Settings, setting

ENCODERS = (*CELLS, "transformer", "convolution", "bag")
DECODERS = (*CELLS, "transformer", "convolution")
TYINGS = ("none", "target", "all")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(Settings):
    """Any encoder under any decoder; as it stands by default, a small Transformer."""

    encoder: str = setting("transformer", "what reads the source", choices=ENCODERS)
    decoder: str = setting("transformer", "what writes the target", choices=DECODERS)
    attention: str = setting(
        "scaled-dot",
        "how a decoder's state is matched with a source state: not at all, q·k, qᵀWk, w·tanh(W[q; k]) or q·k/√d",
        choices=("none", *SCORES),
    )
    d_model: int = setting(128, "width of an embedding and of every state", low=1)
    n_layers: int | tuple[int, int] = setting(3, "layers of each side, or [encoder, decoder]", low=1)
    n_heads: int = setting(4, "heads of a Transformer; must divide d_model", low=1)
    d_ff: int | None = setting(None, "width of a Transformer's feed-forward layers; null: four times d_model", low=1)
    norm: str = setting(
        "pre", "layer norm before or after (Vaswani) each sum of a Transformer", choices=("pre", "post")
    )
    positions: str = setting("sinusoidal", "how a Transformer is told the order", choices=POSITIONS)
    activation: str = setting("relu", "between a Transformer's feed-forward layers", choices=ACTIVATIONS)
    is_bidirectional: bool = setting(
        True, "a recurrent encoder reads both ways, each direction half as wide as d_model"
    )
    input_feeding: bool = setting(
        False, "a recurrent decoder also reads what it last made of the source (Luong et al.)"
    )
    copies: bool = setting(False, "words of the source can be copied, known or not (See et al. 2017)")
    p_dropout: float = setting(0.1, DROPOUT, low=0.0, high=0.95)
    max_context: int = setting(
        256, "tokens of a source or a target at most, where a Transformer reads or writes", low=1
    )
    tying: str = setting(
        "target", "what is one matrix: nothing, target embedding and head, or the source's too", choices=TYINGS
    )
    has_output_bias: bool = setting(
        False, "the score of every word has a number added; that of a recurrent decoder always has"
    )

    @property
    def depths(self) -> tuple[int, int]:
        """Layers of the encoder and of the decoder."""
        return (self.n_layers, self.n_layers) if isinstance(self.n_layers, int) else self.n_layers

    @property
    def has_transformer(self) -> bool:
        return "transformer" in (self.encoder, self.decoder)

    def check(self) -> None:
        if self.has_transformer:
            check_heads(self.d_model, self.n_heads)
        if self.decoder not in CELLS:
            self._check_parallel_decoder()
        if self.attention == "none" and (self.copies or self.input_feeding):
            name = "copies" if self.copies else "input_feeding"
            raise RegardError(
                f"{name} is true and attention is none: there are no weights on the source to use. "
                f"Choose an attention out of {', '.join(SCORES)}, or set {name} to false."
            )
        if self.encoder in CELLS and self.is_bidirectional and self.d_model % 2:
            raise RegardError(
                f"d_model {self.d_model} cannot be halved, and each direction of the encoder takes one half. "
                f"Use d_model {self.d_model + 1}, or set is_bidirectional to false."
            )

    def _check_parallel_decoder(self) -> None:
        if self.attention != "scaled-dot":
            raise RegardError(
                f"attention is {self.attention!r} and the decoder is a {self.decoder}, whose score is scaled-dot. "
                "Leave attention out, or choose a decoder out of rnn, gru, lstm."
            )
        if self.input_feeding:
            raise RegardError(
                f"input_feeding is true and the decoder is a {self.decoder}, which looks at the source in every layer "
                "anyway. Set it to false, or choose a decoder out of rnn, gru, lstm."
            )

    def notes(self) -> list[str]:
        notes = []
        if not self.has_transformer:
            names = ("n_heads", "d_ff", "norm", "positions", "activation", "max_context")
            notes += [
                f"{name} changes nothing: neither encoder nor decoder is a transformer."
                for name in names
                if getattr(self, name) != self.help_of(name).default
            ]
        if not self.is_bidirectional and self.encoder not in CELLS:
            notes.append(f"is_bidirectional changes nothing: the encoder is {self.encoder}, not rnn, gru or lstm.")
        if self.encoder == "bag" and not isinstance(self.n_layers, int):
            notes.append("the encoder's number of layers changes nothing: a bag has none.")
        return notes

    def transformer(self, n_layers: int) -> TransformerConfig:
        """The settings of one side that is a Transformer."""
        names = ("d_model", "n_heads", "d_ff", "norm", "positions", "activation", "max_context", "p_dropout")
        return TransformerConfig(n_layers=n_layers, **{name: getattr(self, name) for name in names})


SIZES: dict[str, tuple[int, int, int, int, float]] = {
    "base": (6, 512, 8, 2048, 0.1),
    "big": (6, 1024, 16, 4096, 0.3),
}
"""Layers of each side, width, heads, feed-forward width and dropout (Vaswani et al. 2017, table 3)."""


@dataclass(frozen=True, kw_only=True)
class VaswaniConfig(Settings):
    """The Transformer of "Attention is all you need" in its two sizes. A number that is given wins over the size's."""

    size: str = setting("base", "what the numbers below are where they are null", choices=tuple(SIZES))
    d_model: int | None = setting(None, "width of an embedding; null: the size's", low=1)
    n_layers: int | tuple[int, int] | None = setting(
        None, "blocks of each side, or [encoder, decoder]; null: the size's", low=1
    )
    n_heads: int | None = setting(None, "attention heads; must divide d_model; null: the size's", low=1)
    d_ff: int | None = setting(None, "width of the feed-forward layers; null: the size's", low=1)
    norm: str = setting("post", "layer norm after (the paper) or before each sum", choices=("pre", "post"))
    p_dropout: float | None = setting(None, "dropout; null: the size's", low=0.0, high=0.95)
    max_context: int = setting(512, "tokens of a source or a target at most", low=1)
    tying: str = setting(
        "all", "what is one matrix: nothing, target embedding and head, or the source's too", choices=TYINGS
    )

    def check(self) -> None:
        self.seq2seq()

    def fill_in(self) -> Self:
        return self.replace(**self._numbers())

    def seq2seq(self) -> Seq2SeqConfig:
        """The model it is."""
        same = {name: getattr(self, name) for name in ("norm", "max_context", "tying")}
        return Seq2SeqConfig.from_dict({**self._numbers(), **same})

    def _numbers(self) -> dict[str, object]:
        names = ("n_layers", "d_model", "n_heads", "d_ff", "p_dropout")
        given = {name: getattr(self, name) for name in names}
        return {
            name: of_size if given[name] is None else given[name]
            for name, of_size in zip(names, SIZES[self.size], strict=True)
        }
