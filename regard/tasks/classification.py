"""The job of telling which class a text, or a pair of texts, belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import RunConfig
from regard.data.labelled import CLASSES, Example
from regard.data.labelled_splits import PreparedLabelled
from regard.data.labelled_windows import Windows
from regard.models.heads import ClassHead, Goal
from regard.models.reader import Reader
from regard.score.calibration import calibrate
from regard.score.classes import MEASURES, Classes, count_confusions
from regard.score.measured import Figure
from regard.tasks.labelled import LabelledTask
from regard.tasks.labelled_looking import Framed, Outcome
from regard.tasks.labelled_run import N_WORST, LabelledEvaluation, LabelledRun, list_under, measure_figure
from regard.tasks.reader_config import ClassConfig, name_labels

MAX_SHOWN = 12
"""Classes of which a table of confusions is printed."""
MAX_COLUMNS = 80
"""Characters of a line that every terminal has."""


@dataclass(frozen=True)
class ClassPrediction:
    """The most probable class, and the probability of every class."""

    label: str
    probability: float
    probabilities: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "probability": self.probability, "probabilities": dict(self.probabilities)}

    def to_text(self) -> str:
        return f"{self.label}\t{self.probability:.4f}"

    def to_answer(self) -> str:
        return self.label


class ClassificationRun(LabelledRun):
    """A trained classifier."""


class ClassificationTask(LabelledTask):
    """Tell the class of a text."""

    name, summary, kind, head_config = "classification", "tells the class of a text", CLASSES, ClassConfig
    run_type = ClassificationRun
    pools = True

    def fill_head(self, config: RunConfig, data: PreparedLabelled) -> RunConfig:
        head = config.section("head", ClassConfig)
        if head.labels is not None:
            return config
        return config.with_section("head", head.replace(labels=tuple(sorted({str(e.label) for e in data.train}))))

    def build_head(self, config: RunConfig, d_model: int, pool: str, layers: nn.Sequential | None) -> ClassHead:
        head, n = config.section("head", ClassConfig), self.n_classes(config)
        has_bias = config.model_name != "gpt2" if head.has_bias is None else head.has_bias
        return ClassHead(d_model, n, pool, head.p_dropout, layers, has_bias)

    def complete(self, config: RunConfig) -> RunConfig:
        head = config.section("head", ClassConfig)
        if head.has_bias is None:
            config = config.with_section("head", head.replace(has_bias=config.model_name != "gpt2"))
        return super().complete(config)

    def goal(self, config: RunConfig, data: PreparedLabelled) -> Goal:
        head = config.section("head", ClassConfig)
        return Goal(head.smoothing, balance(_labels(config), [str(e.label) for e in data.train], head.weights))

    def make_targets(self, config: RunConfig, examples: Sequence[Example], windows: Sequence[Windows]) -> NDArray[Any]:
        number = {label: k for k, label in enumerate(_labels(config))}
        return np.array([number[str(example.label)] for example in examples], dtype=np.int64)

    def read_output(
        self, config: RunConfig, model: Reader, output: Tensor, windows: Windows, texts: Sequence[str]
    ) -> ClassPrediction:
        p, labels = output.double().softmax(dim=-1).tolist(), _labels(config)
        best = max(range(len(p)), key=p.__getitem__)
        return ClassPrediction(labels[best], p[best], dict(zip(labels, p, strict=True)))

    def ask_outcome(self, config: RunConfig, model: Reader, framed: Framed, at: int | None) -> Outcome:
        row = self.pooled_row(config, framed, at)
        return Outcome("the class", _labels(config), lambda output: output.log_softmax(dim=-1), row)

    def make_judge(self, config: RunConfig, examples: Sequence[Example], measure: str) -> Classes:
        return Classes([str(example.label) for example in examples], _labels(config), measure)

    def measure(
        self,
        config: RunConfig,
        examples: Sequence[Example],
        found: Sequence[ClassPrediction],
        skipped: Mapping[str, int],
    ) -> LabelledEvaluation:
        answers, labels = [each.label for each in found], _labels(config)
        judges = {name: self.make_judge(config, examples, name) for name in MEASURES}
        figures = [measure_figure(judge, answers, MEASURES[name]) for name, judge in judges.items()]
        gold = judges["accuracy"].gold
        is_right = [answer == truth for answer, truth in zip(answers, gold, strict=True)]
        calibration = calibrate([each.probability for each in found], is_right)
        figures.append(Figure("calibration error, %", 100 * calibration.ece))
        confusions = count_confusions(gold, answers, labels)
        wrong = [i for i, right in enumerate(is_right) if not right]
        worst = sorted(wrong, key=lambda i: -found[i].probability)[:N_WORST]
        errors = [
            {"texts": examples[i].texts, "true": gold[i], "given": answers[i], "probability": found[i].probability}
            for i in worst
        ]
        chosen = self.select_by(config)
        return LabelledEvaluation(
            figures=tuple(figures),
            headline=MEASURES["accuracy" if chosen == "loss" else chosen],
            n_examples=len(examples),
            more={
                "labels": list(labels), "confusions": confusions, "errors": errors, "calibration": calibration.to_dict()
            },
            details=(*draw_confusions(labels, confusions), *calibration.draw(), *list_errors(errors)),
            skipped=skipped,
        )  # fmt: skip


def _labels(config: RunConfig) -> tuple[str, ...]:
    return name_labels(config.section("head", ClassConfig))


def balance(labels: Sequence[str], given: Sequence[str], weights: str) -> Tensor | None:
    """Weights by which every class counts the same, one on the average example; None: all examples do."""
    if weights == "none":
        return None
    counts = Counter(given)
    n_seen = sum(counts[label] > 0 for label in labels)
    return torch.tensor([len(given) / (n_seen * counts[label]) if counts[label] else 0.0 for label in labels])


def draw_confusions(labels: Sequence[str], confusions: Sequence[Sequence[int]]) -> list[str]:
    """A table of what was taken for what, as lines; none where there are too many classes to read.

    Columns have the names of the classes, or their numbers where the names are too long for a terminal.
    """
    if len(labels) > MAX_SHOWN:
        return []
    names, rows = list(labels), list(labels)
    width = max(8, *map(len, names))
    if (len(names) + 1) * (width + 1) > MAX_COLUMNS:
        names = [str(number) for number in range(1, len(labels) + 1)]
        rows = [f"{number:>2} {label[:24]}" for number, label in zip(names, labels, strict=True)]
        width = max(len(f"{n:,}") for row in confusions for n in row)
    margin = max(map(len, rows))
    lines = ["", "rows: the true class, columns: the class given"]
    lines.append(" " * margin + "".join(f" {name:>{width}}" for name in names))
    for label, row in zip(rows, confusions, strict=True):
        lines.append(f"{label:<{margin}}" + "".join(f" {n:>{width},}" for n in row))
    return lines


def list_errors(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """The worst errors as lines: what was given, what is true, the text."""
    return list_under(
        "the surest errors",
        [
            f"  {error['given']} ({error['probability']:.2f}), true {error['true']}: {' ⇥ '.join(error['texts'])[:160]}"
            for error in errors
        ],
    )


CLASSIFICATION = ClassificationTask()
