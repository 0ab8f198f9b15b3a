"""The one dict of studies. It imports no torch: listing them is instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, nearest
from regard.settings import Settings
from regard.studies.config import ABConfig, CostConfig, ExposureConfig, GradientsConfig, RecencyConfig, ZeroShotConfig

if TYPE_CHECKING:
    from regard.studies.finding import Finding
    from regard.tasks.language_model import LanguageModelRun as Run
    from regard.tasks.translation import TranslationRun as PairRun
    from regard.text.learning import Progress


@dataclass(frozen=True)
class StudyEntry:
    """A study by name: its settings, what it shows, and whether it can be made on runs of the user's."""

    config: type[Settings]
    measure: Callable[[Any, Sequence[Any], Progress], Finding]
    summary: str
    example: str
    """An assignment for --set."""
    making: tuple[str, ...] | None = None
    """The settings of the models that it makes, which mean nothing for runs; None: it takes no runs."""
    reads: str = "text"
    """What the runs that it takes read: text or pairs."""

    @property
    def takes_runs(self) -> bool:
        return self.making is not None


def _gradients(config: GradientsConfig, runs: Sequence[Run], tell: Progress) -> Finding:
    from regard.studies.gradients import study_gradients

    return study_gradients(config, runs, tell)


def _ab(config: ABConfig, runs: Sequence[Run], tell: Progress) -> Finding:
    from regard.studies.ab import study_ab

    return study_ab(config, tell)


def _cost(config: CostConfig, runs: Sequence[Run], tell: Progress) -> Finding:
    from regard.studies.cost import study_cost

    return study_cost(config, tell)


def _recency(config: RecencyConfig, runs: Sequence[Run], tell: Progress) -> Finding:
    from regard.studies.recency import study_recency

    return study_recency(config, runs, tell)


def _exposure(config: ExposureConfig, runs: Sequence[PairRun], tell: Progress) -> Finding:
    from regard.studies.exposure import study_exposure

    return study_exposure(config, runs, tell)


def _zero_shot(config: ZeroShotConfig, runs: Sequence[PairRun], tell: Progress) -> Finding:
    from regard.studies.zero_shot import study_zero_shot

    return study_zero_shot(config, tell)


STUDIES: dict[str, StudyEntry] = {
    "gradients": StudyEntry(
        config=GradientsConfig,
        measure=_gradients,
        summary="how the gradient of a prediction fades with distance: RNN, LSTM, attention",
        example="n_steps=100",
        making=("models", "n_steps", "d_model", "n_layers"),
    ),
    "ab": StudyEntry(
        config=ABConfig,
        measure=_ab,
        summary="was there any B? accuracy by length up to 1,000: bag, RNN, LSTM, attention",
        example="n_steps=100",
    ),
    "cost": StudyEntry(
        config=CostConfig,
        measure=_cost,
        summary="time and memory of one layer by length and by width, with fitted exponents",
        example="n_repeats=3",
    ),
    "recency": StudyEntry(
        config=RecencyConfig,
        measure=_recency,
        summary="how far back a word can be and still change the prediction",
        example="max_distance=32",
        making=("models", "n_steps", "d_model"),
    ),
    "exposure": StudyEntry(
        config=ExposureConfig,
        measure=_exposure,
        summary="exposure bias: what a translation model loses where it reads its own words, by how it was taught",
        example="n_steps=100",
        making=("modes", "n_pairs", "n_steps", "d_model", "seed"),
        reads="pairs",
    ),
    "zero-shot": StudyEntry(
        config=ZeroShotConfig,
        measure=_zero_shot,
        summary="translating between two languages of which no pair was seen: at once, by way of a third, supervised",
        example="n_steps=100",
    ),
}


def study_entry(name: str) -> StudyEntry:
    if name not in STUDIES:
        raise RegardError(f"There is no study '{name}'.{nearest(name, STUDIES)} There are: {', '.join(STUDIES)}.")
    return STUDIES[name]


def study_config(name: str, given: Mapping[str, Any]) -> Settings:
    """The settings of the study called `name`; what is left out takes its default."""
    return study_entry(name).config.from_dict(given)
