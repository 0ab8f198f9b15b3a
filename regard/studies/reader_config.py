"""The settings of studies of what a task reads: layers, pre-training, directions, words or pieces of them.

This file imports no torch, so that settings are read and checked at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError, nearest
from regard.settings import Settings, setting
from regard.studies.config import MOST_SEEDS, GradientsConfig, check_listed

_SEED, _SEEDS = GradientsConfig.help_of("seed").doc, GradientsConfig.help_of("n_seeds").doc
LAYERS = ("first", "second-to-last", "last", "sum", "sum-last-four", "concat-last-four", "mix")
_LABELLED = "labelled texts, as --data of `regard train --task TASK`"


@dataclass(frozen=True, kw_only=True)
class LayersConfig(Settings):
    """Which layers of an encoder a task reads best."""

    data: str = setting("grammar:en-pos:500", f"{_LABELLED}; tagged words by default")
    test: str | None = setting(None, "labelled texts that the heads are scored on; null: a part of data")
    task: str = setting("tag", "what they are for", choices=("tag", "classify"))
    layers: tuple[str, ...] = setting(
        LAYERS, "which are tried; those that take more layers than there are, are left out"
    )
    models: tuple[str, ...] = setting(("lstm", "elmo"), "encoders to make on python-docs where no --run is given")
    n_layers: int = setting(3, "layers of these", low=1)
    d_model: int = setting(64, "width of these; ELMo's is half of it, each way", low=4)
    n_pretrain: int = setting(300, "updates with which these are made", low=1)
    n_steps: int = setting(200, "updates of each head; the encoder is frozen", low=1)
    lr: float = setting(0.01, "learning rate of the heads", low=1e-6)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("layers", self.layers, "[last, mix]")
        check_listed("models", self.models, "[lstm]")
        wrong = next((name for name in self.layers if name not in LAYERS), None)
        if wrong is not None:
            raise RegardError(f"layers must be some of {', '.join(LAYERS)}, not {wrong!r}.{nearest(wrong, LAYERS)}")


@dataclass(frozen=True, kw_only=True)
class TransferConfig(Settings):
    """What a pre-trained encoder gains, by the number of labelled examples."""

    data: str = setting("grammar:en-pos", f"{_LABELLED}; tagged words by default")
    task: str = setting("tag", "what they are for", choices=("tag", "classify"))
    sizes: tuple[int, ...] = setting((30, 100, 300, 1000), "numbers of labelled examples", low=2)
    n_pretrain: int = setting(300, "updates of the LSTM that is made on python-docs where no --run is given", low=1)
    d_model: int = setting(64, "width of this LSTM", low=4)
    n_steps: int = setting(200, "updates of each training", low=1)
    lr: float = setting(0.005, "learning rate of all weights, pre-trained or not", low=1e-6)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("sizes", self.sizes, "[100, 1000]")


@dataclass(frozen=True, kw_only=True)
class DirectionsConfig(Settings):
    """One direction against two, by the number of layers, at equal parameters."""

    data: str = setting("grammar:en-pos:1000", f"{_LABELLED}; tagged words by default")
    task: str = setting("tag", "what they are for", choices=("tag", "classify"))
    model: str = setting("lstm", "what reads them", choices=("rnn", "gru", "lstm"))
    layers: tuple[int, ...] = setting((1, 2, 3), "numbers of layers", low=1)
    n_parameters: int = setting(100_000, "parameters of each model, about, embeddings included", low=1000)
    n_steps: int = setting(200, "updates of each training", low=1)
    lr: float = setting(0.005, "learning rate", low=1e-6)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("layers", self.layers, "[1, 2]")


UNITS = {
    "types": "words",
    "types+characters": "words and characters",
    "wordpiece": "subwords (WordPiece)",
    "bpe": "subwords (BPE)",
    "characters": "characters",
}
"""What a text may be cut into, and what that is called."""


@dataclass(frozen=True, kw_only=True)
class UnitsConfig(Settings):
    """What words unseen in training cost a task: whole words, subwords, characters."""

    data: str = setting("grammar:en-pos:1000", f"{_LABELLED}; tagged words by default")
    task: str = setting("tag", "what they are for", choices=("tag", "classify"))
    units: tuple[str, ...] = setting(tuple(UNITS), f"what texts are cut into, some of {', '.join(UNITS)}")
    sizes: tuple[int, ...] = setting((100, 300, 1000), "numbers of labelled examples", low=10)
    vocab_size: int = setting(600, "subwords of WordPiece and BPE", low=300)
    model: str = setting("lstm", "what reads them", choices=("rnn", "gru", "lstm", "transformer"))
    d_model: int = setting(64, "width of the models; a multiple of 4", low=4)
    n_steps: int = setting(200, "updates of each training", low=1)
    lr: float = setting(0.005, "learning rate", low=1e-6)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("sizes", self.sizes, "[100, 1000]")
        check_listed("units", self.units, "[types, bpe]")
        if self.d_model % 4:
            raise RegardError(f"d_model must be a multiple of 4, not {self.d_model}.")
        for name in self.units:
            if name not in UNITS:
                raise RegardError(f"units are some of {', '.join(UNITS)}, not '{name}'.{nearest(name, UNITS)}")
