"""The settings of every mixer. This file imports no torch, so that configs are read and checked at once."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.settings import Settings, setting

POSITIONS = ("learned", "sinusoidal", "none")
ACTIVATIONS = ("gelu", "gelu_erf", "relu")
DROPOUT = "share of activations dropped while training; raise to 0.1-0.5 where the text is small"
TIED = "one matrix embeds tokens and predicts them (Press & Wolf 2017)"
NO_DROPOUT = "is_variational changes nothing: it says how dropout is drawn, and every dropout is 0."


@dataclass(frozen=True, kw_only=True)
class BagConfig(Settings):
    """Deep averaging: the mean of the embeddings so far, then layers."""

    d_model: int = setting(128, "width of an embedding", low=1)
    d_hidden: int = setting(512, "width of the layers above the average", low=1)
    n_layers: int = setting(2, "layers above the average", low=1)
    max_context: int = setting(128, "tokens averaged at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)


@dataclass(frozen=True, kw_only=True)
class WindowConfig(Settings):
    """Fixed window, feed-forward: the last n embeddings side by side, then a hidden layer."""

    d_model: int = setting(128, "width of an embedding", low=1)
    d_hidden: int = setting(512, "width of the hidden layer", low=1)
    n_window: int = setting(8, "tokens seen at once", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(Settings):
    """What recurrent networks have in common; the settings with a paper are those of the strong LSTM."""

    d_model: int = setting(256, "width of an embedding and of the last layer's state", low=1)
    d_hidden: int | None = setting(None, "width of the layers below the last; null: d_model", low=1)
    n_layers: int = setting(2, "recurrent layers", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    p_input: float | None = setting(None, "dropout of the embedded words; null: p_dropout", low=0.0, high=0.95)
    p_hidden: float | None = setting(None, "dropout between layers; null: p_dropout", low=0.0, high=0.95)
    p_embedding: float = setting(
        0.0, "share of word types left out of a whole batch (Gal & Ghahramani 2016)", low=0.0, high=0.95
    )
    p_weight: float = setting(
        0.0, "share of the state-to-state weights dropped (DropConnect; Merity et al. 2018)", low=0.0, high=0.95
    )
    is_variational: bool = setting(
        False, "one dropout mask for all steps of a sequence (Gal & Ghahramani 2016), not one a step"
    )
    activation_penalty: float = setting(
        0.0, "times the mean square of the dropped output, added to the loss (AR; Merity et al. 2017)", low=0.0
    )
    slowness_penalty: float = setting(
        0.0, "times the mean square of the output's change from step to step (TAR; Merity et al. 2017)", low=0.0
    )
    tie_embeddings: bool = setting(True, TIED)

    def notes(self) -> list[str]:
        notes = []
        between = (self.p_dropout if self.p_hidden is None else self.p_hidden) if self.n_layers > 1 else 0.0
        if self.is_variational and not (self.p_dropout or self.p_input or between):
            notes.append(NO_DROPOUT)
        if self.p_hidden and self.n_layers == 1:
            notes.append("p_hidden changes nothing: it is the dropout between layers, and there is one layer.")
        if self.d_hidden not in (None, self.d_model) and self.n_layers == 1:
            notes.append("d_hidden changes nothing: it is the width of the layers below the last, and there are none.")
        return notes


@dataclass(frozen=True, kw_only=True)
class RNNConfig(RecurrentConfig):
    """Elman's recurrent network, stacked."""


@dataclass(frozen=True, kw_only=True)
class GRUConfig(RecurrentConfig):
    """Gated recurrent units, stacked."""

    d_model: int = setting(192, "width of an embedding and of the last layer's state", low=1)


@dataclass(frozen=True, kw_only=True)
class LSTMConfig(RecurrentConfig):
    """Long short-term memory, stacked."""

    d_model: int = setting(192, "width of an embedding and of the last layer's state", low=1)


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(Settings):
    """Causal self-attention alone, with no feed-forward layers."""

    d_model: int = setting(160, "width of an embedding", low=1)
    n_layers: int = setting(4, "attention layers", low=1)
    n_heads: int = setting(4, "attention heads; must divide d_model where they are concatenated", low=1)
    heads: str = setting(
        "concatenated",
        "many narrow heads side by side (Vaswani), or the average of wide ones, each with its bilinear matrix",
        choices=("concatenated", "averaged"),
    )
    positions: str = setting("learned", "how order is told", choices=POSITIONS)
    max_context: int = setting(128, "tokens seen at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)

    def check(self) -> None:
        if self.heads == "concatenated":
            check_heads(self.d_model, self.n_heads)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(Settings):
    """The Transformer decoder; as it stands by default, a small GPT-2."""

    d_model: int = setting(128, "width of an embedding", low=1)
    n_layers: int = setting(4, "blocks", low=1)
    n_heads: int = setting(4, "attention heads; must divide d_model", low=1)
    d_ff: int | None = setting(None, "width of the feed-forward layers; null: four times d_model", low=1)
    norm: str = setting("pre", "layer norm before (GPT-2) or after (Vaswani) each sum", choices=("pre", "post"))
    positions: str = setting("learned", "how order is told", choices=POSITIONS)
    activation: str = setting("gelu", "between the feed-forward layers", choices=ACTIVATIONS)
    max_context: int = setting(128, "tokens seen at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)

    def check(self) -> None:
        check_heads(self.d_model, self.n_heads)


def check_heads(d_model: int, n_heads: int) -> None:
    if d_model % n_heads:
        raise RegardError(
            f"d_model {d_model} cannot be shared by n_heads {n_heads}: each head takes d_model / n_heads numbers. "
            f"Use d_model {max(d_model // n_heads, 1) * n_heads} or {(d_model // n_heads + 1) * n_heads}."
        )
