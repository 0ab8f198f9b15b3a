"""The one dict of studies. It imports no torch: listing them is instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, nearest
from regard.settings import Settings
from regard.studies.config import (
    ABConfig,
    BottleneckConfig,
    ByHandConfig,
    CopyingConfig,
    CostConfig,
    ExposureConfig,
    FaithfulnessConfig,
    GradientsConfig,
    RecencyConfig,
    ZeroShotConfig,
)
from regard.studies.mechanism_config import AblateConfig, ExplodeConfig, WindowConfig
from regard.studies.reader_config import DirectionsConfig, LayersConfig, TransferConfig, UnitsConfig

if TYPE_CHECKING:
    from regard.studies.finding import Finding


@dataclass(frozen=True)
class StudyEntry:
    """A study by name: its module, its settings, what it shows, and whether it can be made on runs of the user's."""

    module: str
    """In this package; its function `measure` takes the settings, the runs, whom to tell of progress, and how many
    trainings run at a time (`n_jobs`), unless it measures times."""
    config: type[Settings]
    summary: str
    example: str = "n_steps=100"
    """An assignment for --set."""
    making: tuple[str, ...] | None = None
    """The settings of the models that it makes, which mean nothing for runs; None: it takes no runs."""
    reads: str = "text"
    """What the runs that it takes read: text, pairs, any; encoder: any that a task can read its texts with."""
    measures_time: bool = False
    """Whether it measures how long things take, so that nothing may run beside it."""

    @property
    def takes_runs(self) -> bool:
        return self.making is not None

    @property
    def has_seeds(self) -> bool:
        """Whether it is repeated over seeds."""
        return any(field.name == "n_seeds" for field in fields(self.config))  # type: ignore[arg-type]

    @property
    def measure(self) -> Callable[..., Finding]:
        """The study itself; only now is its module imported, and torch with it."""
        found: Callable[..., Finding]
        found = import_module(f"regard.studies.{self.module}").measure
        return found


STUDIES: dict[str, StudyEntry] = {
    "gradients": StudyEntry(
        "gradients", GradientsConfig,
        "how the gradient of a prediction fades with distance: bag, RNN, LSTM, RNN with attention, attention",
        making=("models", "n_steps", "d_model", "n_layers", "n_seeds"),
    ),
    "ab": StudyEntry("ab", ABConfig, "was there any B? by length up to 1,000: bag, RNN, LSTM, attention"),
    "cost": StudyEntry(
        "cost", CostConfig, "time and memory of one layer by length and by width, with fitted exponents", "n_repeats=3",
        measures_time=True,
    ),
    "recency": StudyEntry(
        "recency", RecencyConfig, "how far back a token can be and still change the prediction", "max_distance=32",
        making=("models", "n_steps", "d_model", "n_seeds"),
    ),
    "window": StudyEntry(
        "window", WindowConfig, "what a state is worth that is carried past the truncation of back-propagation",
        "lengths=[16]",
    ),
    "explode": StudyEntry(
        "explode", ExplodeConfig, "gradients by distance where V has spectral radius .5 to 1.5, clipped and not",
        "radii=[0.9, 1.1]",
    ),
    "ablate": StudyEntry(
        "ablate", AblateConfig, "a Transformer less its residual, norm, mask and so on: what each part is for",
        "parts=[mask, scale]",
    ),
    "exposure": StudyEntry(
        "exposure", ExposureConfig,
        "exposure bias: what a translation model loses where it reads its own words, by how it was taught",
        making=("modes", "n_pairs", "n_steps", "d_model", "seed", "n_seeds"), reads="pairs",
    ),
    "bottleneck": StudyEntry(
        "bottleneck", BottleneckConfig,
        "BLEU by the length of the source: no attention, attention, Transformer; taught with short sentences alone",
        making=("models", "max_words", "lengths", "n_pairs", "n_steps", "lr", "d_model", "n_test", "seed", "n_seeds"),
        reads="pairs",
    ),
    "copying": StudyEntry(
        "copying", CopyingConfig, "the loss of words seen before and of new ones, by distance: pointer against LSTM",
        "n_steps=300", making=("vocab_size", "d_model", "max_memory", "n_steps", "seed", "n_seeds"),
    ),
    "zero-shot": StudyEntry(
        "zero_shot", ZeroShotConfig,
        "translating between two languages of which no pair was seen: at once, by way of a third, supervised",
    ),
    "layers": StudyEntry(
        "layers", LayersConfig, "which layers of a stacked LSTM, ELMo or BERT a tagger reads best: one, a sum, a mix",
        making=("models", "n_layers", "d_model", "n_pretrain"), reads="encoder",
    ),
    "transfer": StudyEntry(
        "transfer", TransferConfig, "what pre-training gains, by the number of labelled examples",
        making=("d_model", "n_pretrain"), reads="encoder",
    ),
    "directions": StudyEntry(
        "directions", DirectionsConfig, "one direction against two, with 1, 2 and 3 layers, at equal parameters"
    ),
    "units": StudyEntry(
        "units", UnitsConfig, "what words unseen in training cost a task: whole words, subwords, characters",
        "sizes=[100]",
    ),
    "faithfulness": StudyEntry(
        "faithfulness", FaithfulnessConfig, "whether attention explains: agreement with gradients and erasure, changed",
        "n_texts=10", making=("models", "data", "n_steps", "d_model", "n_seeds"), reads="any",
    ),
    "by-hand": StudyEntry(
        "by_hand", ByHandConfig, "attention worked by hand: the lectures' examples, each number to be changed", "base=3"
    ),
}  # fmt: skip


def study_entry(name: str) -> StudyEntry:
    """The study called `name`."""
    if name not in STUDIES:
        raise RegardError(f"There is no study '{name}'.{nearest(name, STUDIES)} There are: {', '.join(STUDIES)}.")
    return STUDIES[name]


def study_config(name: str, given: Mapping[str, Any]) -> Settings:
    """The settings of the study called `name`; what is left out takes its default."""
    return study_entry(name).config.from_dict(given)
