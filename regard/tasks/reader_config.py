"""What a task may choose about its encoder and its head. Importing this file does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from regard.errors import RegardError
from regard.settings import Settings, setting

Config = TypeVar("Config", bound=Settings)
POOLS = ("mean", "max", "last", "first", "attention", "pooler")
LAYERS = ("last", "first", "second-to-last", "sum", "sum-last-four", "concat-last-four", "mix")
_DROPOUT = "share of what the head reads that is dropped while training"
_LABELS = "all labels, in their order; null: those of the training examples, sorted"
_SELECT = "what the best weights are chosen by on the validation examples"


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(Settings):
    """How a text becomes the vectors that the head reads."""

    frozen: bool = setting(False, "keep the encoder as it is, and train the head alone")
    layers: str = setting(
        "last", "which layers' states are read; mix: a sum with weights that are learned (ELMo)", choices=LAYERS
    )
    pool: str | None = setting(
        None,
        "how the tokens' states become one for the text (classes, numbers); pooler: a layer above BERT's first, as in "
        "Hugging Face's classifiers; null: mean; last for a pre-trained language model; pooler for BERT, or first "
        "where BERT is frozen, encoder.layers is not last, or a mixer lies above",
        choices=POOLS,
    )
    max_window: int | None = setting(
        None,
        "tokens of a text that are read at once, marks included; a longer text is read in windows; null: as many as "
        "the encoder can",
        low=4,
    )
    stride: int | None = setting(
        None, "tokens from one window to the next of a text that is read in windows; null: half a window", low=1
    )
    piece: str | None = setting(
        None,
        "which piece's state tells a tagged word's tag; null: the first, of a pre-trained language model the last, "
        "where it knows the whole word",
        choices=("first", "last"),
    )
    has_case: bool = setting(
        False,
        "bert: add a learned vector to every token that tells how it is written: without capitals, with one first, all "
        "in capitals, or otherwise; for vocabularies that fold case",
    )
    is_bidirectional: bool = setting(True, "rnn, gru and lstm from scratch read the text both ways")


@dataclass(frozen=True, kw_only=True)
class ClassConfig(Settings):
    """The head of a classifier, and how it learns."""

    labels: tuple[str, ...] | None = setting(None, _LABELS)
    weights: str = setting(
        "none", "balanced: every class counts the same in the loss, however rare it is", choices=("none", "balanced")
    )
    smoothing: float = setting(0.0, "probability that is spread over all classes (label smoothing)", low=0.0, high=0.9)
    p_dropout: float = setting(0.1, _DROPOUT, low=0.0, high=0.95)
    select_by: str = setting("accuracy", _SELECT, choices=("accuracy", "macro-f1", "matthews", "loss"))
    has_bias: bool | None = setting(
        None, "a number for each class that is added to its score; null: of GPT-2 none, as in Hugging Face's, else true"
    )
    younger: ClassVar[Mapping[str, Any]] = {"has_bias": True}

    def check(self) -> None:
        _check_labels(self.labels)

    def take_open(self, begun: Settings) -> ClassConfig:
        return _take(self, begun, "labels", "has_bias")


@dataclass(frozen=True, kw_only=True)
class NumberConfig(Settings):
    """The head that gives a number."""

    centre: float | None = setting(None, "what is added to every answer; null: the mean of the training labels")
    spread: float | None = setting(
        None, "what the output is multiplied by; null: the standard deviation of the training labels", low=1e-12
    )
    p_dropout: float = setting(0.1, _DROPOUT, low=0.0, high=0.95)
    select_by: str = setting("pearson", _SELECT, choices=("pearson", "spearman", "loss"))

    def take_open(self, begun: Settings) -> NumberConfig:
        return _take(self, begun, "centre", "spread")


@dataclass(frozen=True, kw_only=True)
class TagConfig(Settings):
    """The head of a tagger, and how it learns."""

    labels: tuple[str, ...] | None = setting(None, _LABELS)
    has_crf: bool = setting(False, "a conditional random field: which tag follows which is learned too")
    weights: str = setting(
        "none", "balanced: every tag counts the same in the loss, however rare it is", choices=("none", "balanced")
    )
    smoothing: float = setting(0.0, "probability that is spread over all tags (label smoothing)", low=0.0, high=0.9)
    p_dropout: float = setting(0.1, _DROPOUT, low=0.0, high=0.95)
    select_by: str | None = setting(
        None,
        f"{_SELECT}; null: the F1 of phrases where tags are B-, I- and O, else accuracy",
        choices=("f1", "accuracy", "loss"),
    )

    def check(self) -> None:
        _check_labels(self.labels)

    def take_open(self, begun: Settings) -> TagConfig:
        return _take(self, begun, "labels", "select_by")


@dataclass(frozen=True, kw_only=True)
class SpanConfig(Settings):
    """The head that finds an answer in a passage."""

    max_answer: int = setting(30, "tokens of an answer at most", low=1)
    allows_none: bool | None = setting(
        None, "whether a question may have no answer; null: whether one of the training questions has none"
    )
    threshold: float = setting(0.0, "how much better than no answer a span must be, in nats, to be given")
    p_dropout: float = setting(0.1, _DROPOUT, low=0.0, high=0.95)
    select_by: str = setting("f1", _SELECT, choices=("f1", "exact", "loss"))

    def take_open(self, begun: Settings) -> SpanConfig:
        return _take(self, begun, "allows_none")


def _check_labels(labels: Sequence[str] | None) -> None:
    if labels is not None and not labels:
        raise RegardError(
            "head.labels must name one label or more, such as [good, bad]. Leave it out to take those of the training "
            "examples."
        )


def name_labels(head: ClassConfig | TagConfig) -> tuple[str, ...]:
    """The labels that the head tells apart, which training fills in where they are left open."""
    if head.labels is None:
        raise RegardError(
            "The run's config.yaml names no labels (head.labels), which training writes there. Copy the run's folder "
            "again from where it was trained."
        )
    return head.labels


def _take(own: Config, begun: Settings, *names: str) -> Config:
    """A copy in which what the data decide, and is null, is what a run was begun with."""
    if type(begun) is not type(own):
        return own
    return own.replace(**{name: getattr(begun, name) for name in names if getattr(own, name) is None})
