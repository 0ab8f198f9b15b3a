"""The settings of models that describe pictures. This file imports no torch, so that configs are read at once."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.mixers.config import CELLS, DROPOUT, SCORES, check_heads
from regard.models.seq2seq_config import DECODERS, Seq2SeqConfig
from regard.settings import Settings, setting

ENCODERS = ("convolution", "patches", "efficientnet-lite0")
ONLY_FOR = {
    "convolution": ("d_first", "n_halvings"),
    "patches": ("patch",),
    "efficientnet-lite0": ("is_frozen",),
}
"""What can be set for one encoder and means nothing to the others."""
PUBLISHED_SIZE = 224
MAX_SIZE = 1024
N_GROUPS = 8


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig(Settings):
    """Any picture encoder under any decoder. The side of the pictures is that of the data (`data.size`)."""

    encoder: str = setting(
        "convolution",
        "what sees; convolution and patches (a Transformer) learn it here, efficientnet-lite0 has learned on ImageNet",
        choices=ENCODERS,
    )
    decoder: str = setting("lstm", "what writes the caption", choices=DECODERS)
    attention: str | None = setting(
        None,
        "how a decoder's state is matched with a place of the picture; none: it is only told the mean of all places; "
        "null: mlp, w·tanh(W[q; k]), and scaled-dot for a transformer or a convolution",
        choices=("none", *SCORES),
    )
    d_model: int = setting(256, "width of a word, of a place of the picture and of every state", low=1)
    n_layers: int = setting(1, "layers of the decoder", low=1)
    n_encoder_layers: int = setting(
        1,
        "convolution: residual blocks at each size; patches: Transformer blocks; efficientnet-lite0 has its own",
        low=1,
    )
    n_heads: int = setting(4, "heads of every Transformer; must divide d_model", low=1)
    input_feeding: bool = setting(False, "a recurrent decoder is also told what it last made of what it saw")
    p_dropout: float = setting(0.3, DROPOUT, low=0.0, high=0.95)
    p_picture_dropout: float = setting(0.0, "share of what the encoder says dropped while training", low=0, high=0.95)
    d_first: int = setting(32, "convolution: channels after the first one; each halving doubles them", low=8)
    n_halvings: int = setting(
        4, "convolution: how often the sides are halved; 160 pixels and 4 make a grid of 10 by 10", low=1, high=6
    )
    patch: int = setting(16, "patches: side of a patch in pixels", low=1)
    is_frozen: bool = setting(True, "efficientnet-lite0: what it has learned stays as it is; else it is trained on")
    max_context: int = setting(
        64, "tokens of a caption at most, where a Transformer writes; longer ones are cut", low=2
    )

    def check(self) -> None:
        if self.decoder not in CELLS and self.attention not in (None, "scaled-dot"):
            raise RegardError(
                f"attention is {self.attention!r} and the decoder is a {self.decoder}, whose score is scaled-dot. "
                "Leave attention out, or choose a decoder out of rnn, gru, lstm."
            )
        if self.encoder == "convolution" and self.d_first % N_GROUPS:
            raise RegardError(
                f"d_first must be a multiple of {N_GROUPS}, in which channels are normed, not {self.d_first}."
            )
        if self.encoder == "patches":
            check_heads(self.d_model, self.n_heads)
        self.writing()

    def check_size(self, size: int) -> None:
        """Refuse pictures of `size` by `size` pixels where the encoder cannot take them."""
        smallest = 32 if self.encoder == "efficientnet-lite0" else 8
        if not smallest <= size <= MAX_SIZE:
            raise RegardError(
                f"size must be between {smallest} and {MAX_SIZE}, not {size}, for the encoder {self.encoder}."
            )
        if self.encoder == "patches" and size % self.patch:
            raise RegardError(
                f"size {size} is no multiple of patch {self.patch}. Make size "
                f"{max(1, round(size / self.patch)) * self.patch}, or change patch."
            )

    @property
    def is_fixed(self) -> bool:
        """Whether a picture looks the same to the encoder all through training."""
        return self.encoder == "efficientnet-lite0" and self.is_frozen

    def writing(self) -> Seq2SeqConfig:
        """The settings of the decoder; what they say of an encoder is not asked."""
        default = "mlp" if self.decoder in CELLS else "scaled-dot"
        return Seq2SeqConfig(
            encoder="bag",
            decoder=self.decoder,
            attention=default if self.attention is None else self.attention,
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            input_feeding=self.input_feeding,
            p_dropout=self.p_dropout,
            max_context=self.max_context,
        )

    def notes(self) -> list[str]:
        unused = [name for encoder, names in ONLY_FOR.items() if encoder != self.encoder for name in names]
        if self.encoder == "efficientnet-lite0":
            unused.append("n_encoder_layers")
        if self.encoder != "patches" and self.decoder != "transformer":
            unused.append("n_heads")
        changed = [name for name in unused if getattr(self, name) != self.help_of(name).default]
        return [
            f"{name} changes nothing: the encoder is {self.encoder}, the decoder {self.decoder}." for name in changed
        ]

    def notes_for(self, size: int) -> list[str]:
        """What is worth knowing about pictures of this size, as sentences."""
        if self.encoder != "efficientnet-lite0" or size == PUBLISHED_SIZE:
            return []
        return [f"data.size is {size}; efficientnet-lite0 has learned from pictures of {PUBLISHED_SIZE} pixels."]
