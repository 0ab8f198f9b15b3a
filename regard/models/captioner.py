"""Captions: an encoder sees a picture, a conditional language model says what is in it."""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from regard.layers.bridge import Bridge, mean_state
from regard.layers.taps import Taps, scope
from regard.mixers.config import CELLS
from regard.models.captioner_config import CaptionerConfig
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.picture_encoder import (
    ConvolutionPictures,
    EfficientNetPictures,
    Grid,
    PatchPictures,
    picture_encoder,
    source_of,
    unit_range,
)
from regard.models.seq2seq_assemblies import conditional_language_model
from regard.models.source import Source


class Captioner(nn.Module):
    """P(y | picture) = Π_t P(y_t | y_1 ... y_{t-1}, s),   s = encoder(picture), one vector for each place of a grid

    A recurrent decoder starts from the mean of s, and looks at s itself where it has attention: with it, "Show, attend
    and tell" (Xu et al. 2015); without, "Show and tell" (Vinyals et al. 2015), whose picture is one vector. Departures:
    the context is joined to the state after the step (Luong et al. 2015) and not before it, and nothing asks the
    attention to cover the whole picture.
    """

    def __init__(
        self,
        encoder: ConvolutionPictures | PatchPictures | EfficientNetPictures,
        target: ConditionalLanguageModel,
        bridge: Bridge | None,
    ) -> None:
        super().__init__()
        self.encoder, self.target, self.bridge = encoder, target, bridge

    def encode(
        self, seen: UInt8[Tensor, "B 3 size size"] | Float[Tensor, "B 320 h w"], taps: Taps | None = None
    ) -> Source:
        """What the decoder may look at: of pictures in bytes, or of what EfficientNet's trunk made of them before."""
        inner = scope(taps, "encoder")
        if seen.dtype == torch.uint8:
            states = self.encoder(unit_range(seen, self.embedding), inner)
        else:
            assert isinstance(self.encoder, EfficientNetPictures), "only its trunk is ever computed before"
            states = self.encoder.states(seen, inner)
        source = source_of(states)
        start = () if self.bridge is None else self.bridge((mean_state(source.states, source.mask),))
        return source._replace(start=start)

    def forward(
        self,
        seen: UInt8[Tensor, "B 3 size size"] | Float[Tensor, "B 320 h w"],
        inputs: Int[Tensor, "B T"],
        taps: Taps | None = None,
    ) -> Float[Tensor, "B T V"]:
        """log P of every word at every position, with the true words before it."""
        return self.target(inputs, self.encode(seen, taps), taps)  # type: ignore[no-any-return]

    @property
    def vocab_size(self) -> int:
        return self.target.vocab_size

    @property
    def d_model(self) -> int:
        return self.target.d_model

    @property
    def embedding(self) -> Float[Tensor, "V D"]:
        """That of the words."""
        return self.target.embedding

    @property
    def max_context(self) -> int | None:
        """The longest caption, in tokens; None: no limit."""
        return self.target.max_context

    @property
    def grid(self) -> Grid:
        """Rows and columns of the places that the decoder looks at."""
        return self.encoder.grid

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def flops_per_caption(self, n_target: int) -> int:
        """Forward cost of a picture and a caption of `n_target` tokens, twice the multiply-adds."""
        bridge = 0 if self.bridge is None else self.bridge.flops()
        n_places = self.grid[0] * self.grid[1]
        return self.encoder.flops_per_picture() + bridge + self.target.flops(n_places, n_target)


def captioner(config: CaptionerConfig, vocab_size: int, size: int) -> Captioner:
    """The model of `config` for pictures of `size` by `size` pixels, with fresh weights.

    EfficientNet's are given by `regard.weights.efficientnet_lite.load_published`.
    """
    encoder = picture_encoder(config, size)
    bridge = None
    if config.decoder in CELLS:
        bridge = Bridge(config.d_model, 1, config.n_layers, has_cell=config.decoder == "lstm")
    return Captioner(encoder, conditional_language_model(config.writing(), vocab_size), bridge)
