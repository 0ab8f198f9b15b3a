"""The names of all models: those that read a text, pairs, or pictures. It imports no torch: listing models and
reading configs stay instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from regard.count.config import NgramConfig
from regard.errors import RegardError, nearest
from regard.mixers.config import (
    AttentionConfig,
    BagConfig,
    GRUConfig,
    LSTMConfig,
    RNNConfig,
    TransformerConfig,
    WindowConfig,
)
from regard.mixers.convolution_config import ConvolutionConfig
from regard.mixers.looking_back_config import PointerConfig, RecurrentAttentionConfig
from regard.mixers.restricted_config import RestrictedConfig
from regard.models.captioner_config import CaptionerConfig
from regard.models.gpt2_config import GPT2Config
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.settings import Settings

if TYPE_CHECKING:
    from regard.models.captioner import Captioner
    from regard.models.gradient_model import GradientModel
    from regard.models.seq2seq import Seq2Seq


@dataclass(frozen=True)
class ModelEntry:
    """A model by name: its config, how it is built, and what to read about it.

    A count model is fitted rather than built: its `build` is None.
    """

    config: type[Settings]
    build: Callable[[Any, int], GradientModel] | None
    summary: str
    paper: str
    kind: Literal["count", "gradient"]
    reads: Literal["text"] = "text"


@dataclass(frozen=True)
class PairModelEntry:
    """A model that reads pairs. It is built for the vocabularies of the target and of the source (None: the same)."""

    config: type[Settings]
    build: Callable[[Any, int, int | None], Seq2Seq]
    summary: str
    paper: str
    kind: Literal["gradient"] = "gradient"
    reads: Literal["pairs"] = "pairs"


@dataclass(frozen=True)
class PictureModelEntry:
    """A model that describes pictures. It is built for a vocabulary and for the side of the pictures in pixels."""

    config: type[Settings]
    build: Callable[[Any, int, int], Captioner]
    summary: str
    paper: str
    kind: Literal["gradient"] = "gradient"
    reads: Literal["pictures"] = "pictures"


def _assemblies() -> ModuleType:
    from regard.models import assemblies

    return assemblies


def _gpt2() -> ModuleType:
    from regard.models import gpt2

    return gpt2


def _seq2seq() -> ModuleType:
    from regard.models import seq2seq_assemblies

    return seq2seq_assemblies


def _captioner() -> ModuleType:
    from regard.models import captioner

    return captioner


def _looking_back() -> ModuleType:
    from regard.models import looking_back

    return looking_back


MODELS: dict[str, ModelEntry] = {
    "ngram": ModelEntry(
        config=NgramConfig,
        build=None,
        summary="counts of the last n-1 tokens, smoothed",
        paper="Kneser & Ney 1995; Chen & Goodman 1998",
        kind="count",
    ),
    "bag": ModelEntry(
        config=BagConfig,
        build=lambda config, vocab_size: _assemblies().bag(config, vocab_size),
        summary="the average of the embeddings so far, then layers",
        paper="Iyyer et al. 2015",
        kind="gradient",
    ),
    "window": ModelEntry(
        config=WindowConfig,
        build=lambda config, vocab_size: _assemblies().window(config, vocab_size),
        summary="the last n embeddings side by side, then a hidden layer",
        paper="Bengio et al. 2003",
        kind="gradient",
    ),
    "rnn": ModelEntry(
        config=RNNConfig,
        build=lambda config, vocab_size: _assemblies().rnn(config, vocab_size),
        summary="Elman's recurrent network: one state, rewritten at every step",
        paper="Elman 1990; Mikolov et al. 2010",
        kind="gradient",
    ),
    "gru": ModelEntry(
        config=GRUConfig,
        build=lambda config, vocab_size: _assemblies().gru(config, vocab_size),
        summary="a recurrent network whose gates choose what to keep",
        paper="Cho et al. 2014",
        kind="gradient",
    ),
    "lstm": ModelEntry(
        config=LSTMConfig,
        build=lambda config, vocab_size: _assemblies().lstm(config, vocab_size),
        summary="a recurrent network with a memory cell behind three gates",
        paper="Hochreiter & Schmidhuber 1997; Zaremba et al. 2014",
        kind="gradient",
    ),
    "rnn-attention": ModelEntry(
        config=RecurrentAttentionConfig,
        build=lambda config, vocab_size: _looking_back().rnn_attention(config, vocab_size),
        summary="a recurrent network that attends to its own past states",
        paper="Bahdanau et al. 2015; Luong et al. 2015; Daniluk et al. 2017",
        kind="gradient",
    ),
    "pointer": ModelEntry(
        config=PointerConfig,
        build=lambda config, vocab_size: _looking_back().pointer(config, vocab_size),
        summary="a recurrent network that can also copy words from its past",
        paper="Merity et al. 2016; See et al. 2017; Grave et al. 2017",
        kind="gradient",
    ),
    "convolution": ModelEntry(
        config=ConvolutionConfig,
        build=lambda config, vocab_size: _assemblies().convolution(config, vocab_size),
        summary="causal convolutions with gates, stacked; dilated if asked",
        paper="Dauphin et al. 2017; van den Oord et al. 2016",
        kind="gradient",
    ),
    "restricted": ModelEntry(
        config=RestrictedConfig,
        build=lambda config, vocab_size: _assemblies().restricted(config, vocab_size),
        summary="self-attention within a window, at a cost that grows with the window and not with the text",
        paper="Vaswani et al. 2017",
        kind="gradient",
    ),
    "attention": ModelEntry(
        config=AttentionConfig,
        build=lambda config, vocab_size: _assemblies().attention(config, vocab_size),
        summary="causal self-attention alone, with no feed-forward layers",
        paper="Vaswani et al. 2017",
        kind="gradient",
    ),
    "transformer": ModelEntry(
        config=TransformerConfig,
        build=lambda config, vocab_size: _assemblies().transformer(config, vocab_size),
        summary="the Transformer decoder: self-attention and feed-forward layers, as in GPT-2",
        paper="Vaswani et al. 2017; Radford et al. 2019",
        kind="gradient",
    ),
    "gpt2": ModelEntry(
        config=GPT2Config,
        build=lambda config, vocab_size: _gpt2().gpt2(config, vocab_size),
        summary="GPT-2 in its four sizes, 124M to 1.5B; from scratch or from a Hugging Face folder",
        paper="Radford et al. 2019",
        kind="gradient",
    ),
}


PAIR_MODELS: dict[str, PairModelEntry] = {
    "seq2seq": PairModelEntry(
        config=Seq2SeqConfig,
        build=lambda config, *sizes: _seq2seq().seq2seq(config, *sizes),
        summary="an encoder and a decoder, recurrent, convolutional or Transformer, with attention between them or not",
        paper="Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015; Vaswani et al. 2017",
    ),
    "vaswani": PairModelEntry(
        config=VaswaniConfig,
        build=lambda config, *sizes: _seq2seq().vaswani(config, *sizes),
        summary='the Transformer of "Attention is all you need", base or big',
        paper="Vaswani et al. 2017",
    ),
}
"""Models that read pairs: sentences and their translations, say."""


PICTURE_MODELS: dict[str, PictureModelEntry] = {
    "captioner": PictureModelEntry(
        config=CaptionerConfig,
        build=lambda config, *sizes: _captioner().captioner(config, *sizes),
        summary="says what is in a picture: convolutions or patches, then a decoder that looks at them word by word",
        paper="Vinyals et al. 2015; Xu et al. 2015",
    ),
}
"""Models that read pictures and write captions."""

MODEL_NAMES = (*MODELS, *PAIR_MODELS, *PICTURE_MODELS)


def model_entry(name: str) -> ModelEntry | PairModelEntry | PictureModelEntry:
    found = MODELS.get(name) or PAIR_MODELS.get(name) or PICTURE_MODELS.get(name)
    if found is None:
        names = MODEL_NAMES
        raise RegardError(f"There is no model '{name}'.{nearest(name, names)} There are: {', '.join(names)}.")
    return found


def model_config(name: str, given: Mapping[str, Any] | None = None, where: str = "model") -> Settings:
    """The config of the model called `name`, from plain values; what is left out takes its default.

    >>> model_config("ngram", {"order": 3}).to_dict()
    {'order': 3, 'smoothing': 'kneser-ney', 'k': 0.1}
    """
    return model_entry(name).config.from_dict(given or {}, where)


def build_language_model(name: str, config: Settings, vocab_size: int) -> GradientModel:
    """The gradient model called `name`, with fresh weights from torch's random numbers."""
    entry = model_entry(name)
    if not isinstance(entry, ModelEntry):
        raise RegardError(f"The model '{name}' reads {entry.reads} and is no language model.")
    if entry.build is None:
        raise RegardError(f"The model '{name}' is counted, not built: fit it on a text instead.")
    return entry.build(config, vocab_size)


def build_pair_model(name: str, config: Settings, vocab_size: int, source_vocab_size: int | None) -> Seq2Seq:
    """The same for a model that reads pairs; no `source_vocab_size`: both sides share one vocabulary."""
    entry = model_entry(name)
    assert isinstance(entry, PairModelEntry), f"{name} reads text"
    return entry.build(config, vocab_size, source_vocab_size)


def build_picture_model(name: str, config: Settings, vocab_size: int, size: int) -> Captioner:
    """The same for a model that reads pictures of `size` by `size` pixels."""
    entry = model_entry(name)
    assert isinstance(entry, PictureModelEntry), f"{name} reads {entry.reads}"
    return entry.build(config, vocab_size, size)
