"""The names of all models, and which jobs each can do. It imports no torch: listing models stays instant."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from regard.count.config import NgramConfig
from regard.errors import RegardError, nearest
from regard.mixers.config import (
    AttentionConfig,
    BagConfig,
    ConvolutionConfig,
    GRUConfig,
    LSTMConfig,
    PointerConfig,
    RecurrentAttentionConfig,
    RestrictedConfig,
    RNNConfig,
    TransformerConfig,
    WindowConfig,
)
from regard.models.bert_config import BertConfig
from regard.models.captioner_config import CaptionerConfig
from regard.models.elmo_config import ElmoConfig
from regard.models.gpt2_config import GPT2Config
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.models.word_vectors_config import GloVeConfig, LSAConfig, Word2VecConfig
from regard.settings import Settings

BASE_WIDTH = 128
"""The width at which the default rates are what they are called."""

ENCODER_TASKS = ("classification", "rating", "tagging", "answering")
"""Tasks whose model is an encoder and a head; a config names them."""


@dataclass(frozen=True)
class ModelEntry:
    """A model by name: its config, how it is built, what to read about it, and what it can be trained for."""

    config: type[Settings]
    build: Callable[..., Any] | None
    """From its config and the sizes that its task hands over; None: its task fits it, by counting or its own rules."""
    summary: str
    paper: str
    tasks: tuple[str, ...] = ("language-model",)
    """Names of `regard.tasks.table.TASKS`; the first that recognises the data is taken where a config names none."""
    encodes: bool = False
    """Whether it can read a text for the tasks of `ENCODER_TASKS`, from scratch or as it was pre-trained."""
    lr: float | None = None
    """AdamW's rate where rates follow the width, found as docs/defaults.md says; None: nothing was measured."""
    embedding_rate: float = 1.0
    """The rate of embeddings as a multiple of `lr`, at BASE_WIDTH."""
    has_fixed_spread: bool = False
    """Whether embeddings start with one spread at every width; else with one in proportion to 1/√D."""

    @property
    def all_tasks(self) -> tuple[str, ...]:
        """What it can be trained for, with what an encoder can."""
        return (*self.tasks, *(ENCODER_TASKS if self.encodes else ()))

    @property
    def is_counted(self) -> bool:
        """Fitted by its task and not by the training loop: n-grams and word vectors."""
        return self.build is None

    def embedding_rate_at(self, d_model: int) -> float:
        """The rate of embeddings as a multiple of `lr`: in proportion to the spread that they start with."""
        return self.embedding_rate * (1.0 if self.has_fixed_spread else math.sqrt(BASE_WIDTH / d_model))


def _assemblies() -> ModuleType:
    from regard.models import assemblies  # with torch, which takes long to start

    return assemblies


def _gpt2() -> ModuleType:
    from regard.models import gpt2  # with torch, which takes long to start

    return gpt2


def _bert() -> ModuleType:
    from regard.models import bert  # with torch, which takes long to start

    return bert


def _seq2seq() -> ModuleType:
    from regard.models import seq2seq_assemblies  # with torch, which takes long to start

    return seq2seq_assemblies


def _captioner() -> ModuleType:
    from regard.models import captioner  # with torch, which takes long to start

    return captioner


MODELS: dict[str, ModelEntry] = {
    "ngram": ModelEntry(
        config=NgramConfig,
        build=None,
        summary="counts of the last n-1 tokens, smoothed",
        paper="Kneser & Ney 1995; Chen & Goodman 1998",
    ),
    "bag": ModelEntry(
        config=BagConfig,
        build=lambda config, vocab_size: _assemblies().bag(config, vocab_size),
        encodes=True,
        summary="the average of the embeddings so far, then layers",
        paper="Iyyer et al. 2015",
        lr=0.01,
    ),
    "window": ModelEntry(
        config=WindowConfig,
        build=lambda config, vocab_size: _assemblies().window(config, vocab_size),
        encodes=True,
        summary="the last n embeddings side by side, then a hidden layer",
        paper="Bengio et al. 2003",
        lr=0.016,
    ),
    "rnn": ModelEntry(
        config=RNNConfig,
        build=lambda config, vocab_size: _assemblies().recurrent_network("rnn", config, vocab_size),
        encodes=True,
        summary="Elman's recurrent network: one state, rewritten at every step",
        paper="Elman 1990; Mikolov et al. 2010",
        lr=0.012,
        has_fixed_spread=True,
    ),
    "gru": ModelEntry(
        config=GRUConfig,
        build=lambda config, vocab_size: _assemblies().recurrent_network("gru", config, vocab_size),
        encodes=True,
        summary="a recurrent network whose gates choose what to keep",
        paper="Cho et al. 2014",
        lr=0.016,
        has_fixed_spread=True,
    ),
    "lstm": ModelEntry(
        config=LSTMConfig,
        build=lambda config, vocab_size: _assemblies().recurrent_network("lstm", config, vocab_size),
        encodes=True,
        summary="a recurrent network with a memory cell behind three gates",
        paper="Hochreiter & Schmidhuber 1997; Zaremba et al. 2014",
        lr=0.02,
        has_fixed_spread=True,
    ),
    "rnn-attention": ModelEntry(
        config=RecurrentAttentionConfig,
        build=lambda config, vocab_size: _assemblies().rnn_attention(config, vocab_size),
        encodes=True,
        summary="a recurrent network that attends to its own past states",
        paper="Bahdanau et al. 2015; Luong et al. 2015; Daniluk et al. 2017",
        lr=0.016,
        has_fixed_spread=True,
    ),
    "pointer": ModelEntry(
        config=PointerConfig,
        build=lambda config, vocab_size: _assemblies().pointer(config, vocab_size),
        encodes=True,
        summary="a recurrent network that can also copy words from its past",
        paper="Merity et al. 2016; See et al. 2017; Grave et al. 2017",
        lr=0.016,
        has_fixed_spread=True,
    ),
    "convolution": ModelEntry(
        config=ConvolutionConfig,
        build=lambda config, vocab_size: _assemblies().convolution(config, vocab_size),
        encodes=True,
        summary="causal convolutions with gates, stacked; dilated if asked",
        paper="Dauphin et al. 2017; van den Oord et al. 2016",
        lr=0.01,
    ),
    "restricted": ModelEntry(
        config=RestrictedConfig,
        build=lambda config, vocab_size: _assemblies().self_attention(config, vocab_size),
        encodes=True,
        summary="self-attention within a window, at a cost that grows with the window and not with the text",
        paper="Vaswani et al. 2017",
        lr=0.003,
        embedding_rate=4.0,
    ),
    "attention": ModelEntry(
        config=AttentionConfig,
        build=lambda config, vocab_size: _assemblies().self_attention(config, vocab_size),
        encodes=True,
        summary="causal self-attention alone, with no feed-forward layers",
        paper="Vaswani et al. 2017",
        lr=0.003,
        embedding_rate=4.0,
    ),
    "transformer": ModelEntry(
        config=TransformerConfig,
        build=lambda config, vocab_size: _assemblies().self_attention(config, vocab_size),
        encodes=True,
        summary="the Transformer decoder: self-attention and feed-forward layers, as in GPT-2",
        paper="Vaswani et al. 2017; Radford et al. 2019",
        lr=0.003,
        embedding_rate=4.0,
    ),
    "gpt2": ModelEntry(
        config=GPT2Config,
        build=lambda config, vocab_size: _gpt2().gpt2(config, vocab_size),
        encodes=True,
        summary="GPT-2 in its four sizes, 124M to 1.5B; from scratch or from a Hugging Face folder",
        paper="Radford et al. 2019",
    ),
    "elmo": ModelEntry(
        config=ElmoConfig,
        build=lambda config, vocab_size: _assemblies().elmo(config, vocab_size),
        summary="two LSTM language models, one each way, over characters: vectors of words in their context",
        paper="Peters et al. 2018",
        tasks=("bidirectional-language-model",),
        encodes=True,
    ),
    "bert": ModelEntry(
        config=BertConfig,
        build=lambda config, vocab_size: _bert().bert(config, vocab_size),
        summary="BERT in four sizes, 4M to 340M: reads both sides, fills masked places; from scratch or Hugging Face",
        paper="Devlin et al. 2019",
        tasks=("masked-language-model",),
        encodes=True,
    ),
    "seq2seq": ModelEntry(
        config=Seq2SeqConfig,
        build=lambda config, *sizes: _seq2seq().seq2seq(config, *sizes),
        summary="an encoder and a decoder, recurrent, convolutional or Transformer, with attention between them or not",
        paper="Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015; Gehring, Vaswani et al. 2017",
        tasks=("parsing", "translation"),
    ),
    "vaswani": ModelEntry(
        config=VaswaniConfig,
        build=lambda config, *sizes: _seq2seq().vaswani(config, *sizes),
        summary='the Transformer of "Attention is all you need", base or big',
        paper="Vaswani et al. 2017",
        tasks=("parsing", "translation"),
    ),
    "captioner": ModelEntry(
        config=CaptionerConfig,
        build=lambda config, *sizes: _captioner().captioner(config, *sizes),
        summary="says what is in a picture: convolutions or patches, then a decoder that looks at them word by word",
        paper="Vinyals et al. 2015; Xu et al. 2015",
        tasks=("captions",),
    ),
    "lsa": ModelEntry(
        config=LSAConfig,
        build=None,
        summary="word vectors by counting: mutual information of words and contexts, reduced by SVD",
        paper="Deerwester et al. 1990; Levy et al. 2015",
        tasks=("word-vectors",),
    ),
    "skipgram": ModelEntry(
        config=Word2VecConfig,
        build=None,
        summary="word vectors by predicting: each word predicts those near it; with subwords as in fastText, if asked",
        paper="Mikolov et al. 2013; Bojanowski et al. 2017",
        tasks=("word-vectors",),
    ),
    "cbow": ModelEntry(
        config=Word2VecConfig,
        build=None,
        summary="word vectors by predicting: the mean of those near it predicts each word",
        paper="Mikolov et al. 2013; Bojanowski et al. 2017",
        tasks=("word-vectors",),
    ),
    "glove": ModelEntry(
        config=GloVeConfig,
        build=None,
        summary="word vectors whose products are the logarithms of co-occurrence counts",
        paper="Pennington et al. 2014",
        tasks=("word-vectors",),
    ),
}


def model_entry(name: str) -> ModelEntry:
    if name not in MODELS:
        raise RegardError(f"There is no model '{name}'.{nearest(name, MODELS)} There are: {', '.join(MODELS)}.")
    return MODELS[name]


def models_for(task: str) -> list[str]:
    """Names of the models that can be trained for a task."""
    return [name for name, entry in MODELS.items() if task in entry.all_tasks]


def model_config(name: str, given: Mapping[str, Any] | None = None, where: str = "model") -> Settings:
    """The config of the model called `name`, from plain values; what is left out takes its default.

    >>> model_config("ngram", {"order": 3}).to_dict()
    {'order': 3, 'smoothing': 'kneser-ney', 'k': 0.1}
    """
    return model_entry(name).config.from_dict(given or {}, where)


def build_model(name: str, config: Settings, *sizes: int | None) -> Any:
    """The model called `name`, with fresh weights from torch's random numbers.

    `sizes` are what its task knows of the data: for a language model the size of the vocabulary.
    """
    build = model_entry(name).build
    if build is None:
        raise RegardError(f"The model '{name}' is counted, not built: fit it on a text instead.")
    return build(config, *sizes)
