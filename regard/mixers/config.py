"""The settings of every mixer. This file imports no torch, so that configs are read and checked at once."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.settings import Settings, setting

POSITIONS = ("learned", "sinusoidal", "none")
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "swish")
DROPOUT = "share of activations dropped while training; raise to 0.1-0.5 where the text is small"
TIED = "one matrix embeds tokens and predicts them (Press & Wolf 2017)"
MAX_SEEN = 2**20  # tokens that a convolution can reach back: every layer keeps the vectors it can still see
CELLS = ("rnn", "gru", "lstm")
SCORES = ("dot", "bilinear", "mlp", "scaled-dot")
MIXES = ("fixed", "learned", "sentinel")
PARTS = ("residual", "norm", "values", "scale", "mask")
COPIES = ("word", "next")
P_VOCABULARY = 0.8
MASK_NOTE = (
    "without leaves out the mask: in training every position sees the word that it is to predict, so that the training "
    "loss means nothing. Scores and texts are computed word by word, where no later word is there to be seen."
)
_EMBEDDING = "share of word types left out of a whole batch (Gal & Ghahramani 2016)"
_CELL = "the recurrent layer"
_SCORE = "how a state is matched with an earlier one: q·k, qᵀWk, w·tanh(W[q; k]) or q·k/√d"
_WITHOUT = (
    "parts left out, to see what each is for: x of x + f(x), the layer norms, {}W_v (heads average x itself), √d below "
    "q·k, or the causal mask (training then sees the words that it is to predict)"
)
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
class RecurrentAttentionConfig(Settings):
    """A recurrent network that attends to its own past states."""

    cell: str = setting("lstm", _CELL, choices=CELLS)
    d_model: int = setting(176, "width of an embedding and of the state", low=1)
    n_layers: int = setting(2, "recurrent layers", low=1)
    score: str = setting("scaled-dot", _SCORE, choices=SCORES)
    max_memory: int = setting(128, "how many past states are looked at, at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    p_embedding: float = setting(0.0, _EMBEDDING, low=0.0, high=0.95)
    is_variational: bool = setting(
        False, "one dropout mask for all steps of a window (Gal & Ghahramani 2016), not one a step"
    )
    tie_embeddings: bool = setting(True, TIED)

    def notes(self) -> list[str]:
        return [NO_DROPOUT] if self.is_variational and not self.p_dropout else []


@dataclass(frozen=True, kw_only=True)
class PointerConfig(Settings):
    """A recurrent network that can also copy words from its past."""

    cell: str = setting("lstm", _CELL, choices=CELLS)
    d_model: int = setting(176, "width of an embedding and of the state", low=1)
    n_layers: int = setting(2, "recurrent layers", low=1)
    n_vocab: int | None = setting(
        None, "words it can predict without copying, the most frequent ones; null: all of the tokenizer's", low=2
    )
    score: str = setting("dot", _SCORE, choices=SCORES)
    max_memory: int = setting(128, "how many past positions can be copied from, at most", low=1)
    copies: str = setting("word", "what a past state stands for: the word it read, or the next one", choices=COPIES)
    mix: str = setting("learned", "how vocabulary and copies are weighed", choices=MIXES)
    p_vocabulary: float = setting(P_VOCABULARY, "the vocabulary's share where mix is fixed", low=0.01, high=0.99)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    p_embedding: float = setting(0.0, _EMBEDDING, low=0.0, high=0.95)
    is_variational: bool = setting(
        False, "one dropout mask for all steps of a window (Gal & Ghahramani 2016), not one a step"
    )
    tie_embeddings: bool = setting(True, TIED)

    def notes(self) -> list[str]:
        return [NO_DROPOUT] if self.is_variational and not self.p_dropout else []

    def check(self) -> None:
        if self.mix != "fixed" and self.p_vocabulary != P_VOCABULARY:
            raise RegardError(
                f"p_vocabulary is {self.p_vocabulary} and mix is {self.mix}, which learns the vocabulary's share. "
                "Leave out p_vocabulary, or set mix to fixed."
            )


@dataclass(frozen=True, kw_only=True)
class ConvolutionConfig(Settings):
    """Causal convolutions with gates, stacked."""

    d_model: int = setting(128, "width of an embedding", low=1)
    n_layers: int = setting(6, "convolutions, one above the other", low=1)
    n_window: int = setting(3, "vectors that one convolution sees", low=1)
    dilation_growth: int = setting(
        2,
        "a layer's vectors lie this many times further apart than those of the layer below; 1: all are neighbours",
        low=1,
    )
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)

    def check(self) -> None:
        if self.n_seen > MAX_SEEN:
            raise RegardError(
                f"n_layers {self.n_layers}, n_window {self.n_window} and dilation_growth {self.dilation_growth} reach "
                f"back {self.n_seen:,} tokens; at most {MAX_SEEN:,} are allowed. Lower one of them."
            )

    @property
    def dilations(self) -> tuple[int, ...]:
        """How far apart the vectors lie that each layer sees.

        >>> ConvolutionConfig(n_layers=4, dilation_growth=2).dilations
        (1, 2, 4, 8)
        """
        return tuple(self.dilation_growth**layer for layer in range(self.n_layers))

    @property
    def n_seen(self) -> int:
        """How many tokens, the newest among them, a prediction can depend on.

        >>> ConvolutionConfig(n_layers=4, n_window=3, dilation_growth=1).n_seen
        9
        >>> ConvolutionConfig(n_layers=4, n_window=3, dilation_growth=2).n_seen
        31
        """
        return 1 + (self.n_window - 1) * sum(self.dilations)


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
    without: tuple[str, ...] = setting((), _WITHOUT.format(""), choices=PARTS)

    def check(self) -> None:
        check_without(self.without)
        if self.heads == "concatenated":
            check_heads(self.d_model, self.n_heads)
        elif inner := [part for part in self.without if part not in ("residual", "norm")]:
            raise RegardError(
                f"without names {inner[0]} and heads is averaged, whose heads have no such part to leave out. "
                "Set heads to concatenated, or leave out residual or norm alone."
            )

    def notes(self) -> list[str]:
        return note_mask(self.without)


@dataclass(frozen=True, kw_only=True)
class RestrictedConfig(Settings):
    """Causal self-attention within a window, with no feed-forward layers."""

    d_model: int = setting(160, "width of an embedding", low=1)
    n_layers: int = setting(4, "attention layers", low=1)
    n_heads: int = setting(4, "attention heads; must divide d_model", low=1)
    n_window: int = setting(32, "positions that each looks at, itself among them", low=1)
    positions: str = setting("learned", "how order is told", choices=POSITIONS)
    max_context: int = setting(128, "tokens seen at most", low=1)
    p_dropout: float = setting(0.0, DROPOUT, low=0.0, high=0.95)
    tie_embeddings: bool = setting(True, TIED)

    def check(self) -> None:
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
    without: tuple[str, ...] = setting(
        (), _WITHOUT.format("the feed-forward layers, "), choices=(*PARTS[:2], "feed-forward", *PARTS[2:])
    )

    def check(self) -> None:
        check_heads(self.d_model, self.n_heads)
        check_without(self.without)

    def notes(self) -> list[str]:
        notes = note_mask(self.without)
        if "norm" in self.without and self.norm != "pre":
            notes.append("norm changes nothing: without leaves out the layer norms.")
        if "feed-forward" in self.without and (self.d_ff is not None or self.activation != "gelu"):
            name = "d_ff" if self.d_ff is not None else "activation"
            notes.append(f"{name} changes nothing: without leaves out the feed-forward layers.")
        return notes


def check_without(without: tuple[str, ...]) -> None:
    twice = next((part for i, part in enumerate(without) if part in without[:i]), None)
    if twice is not None:
        raise RegardError(f"without names {twice} twice; leave one out.")


def note_mask(without: tuple[str, ...]) -> list[str]:
    """What is to be said of a model that is trained without its causal mask."""
    return [MASK_NOTE] if "mask" in without else []


def check_heads(d_model: int, n_heads: int) -> None:
    if d_model % n_heads:
        raise RegardError(
            f"d_model {d_model} cannot be shared by n_heads {n_heads}: each head takes d_model / n_heads numbers. "
            f"Use d_model {max(d_model // n_heads, 1) * n_heads} or {(d_model // n_heads + 1) * n_heads}."
        )
