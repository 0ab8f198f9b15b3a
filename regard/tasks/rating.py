"""The job of giving a text, or a pair of texts, a number: stars, or how alike two sentences are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import RunConfig
from regard.data.labelled import NUMBERS, Example
from regard.data.labelled_splits import PreparedLabelled
from regard.data.labelled_windows import Windows
from regard.errors import RegardError
from regard.models.heads import NumberHead
from regard.models.reader import Reader
from regard.score.correlation import MEASURES, Correlation
from regard.score.measured import Figure
from regard.tasks.labelled import LabelledTask
from regard.tasks.labelled_looking import Framed, Outcome
from regard.tasks.labelled_run import N_WORST, LabelledEvaluation, LabelledRun, list_under, measure_figure
from regard.tasks.reader_config import NumberConfig


@dataclass(frozen=True)
class NumberPrediction:
    """A number."""

    value: float

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def to_text(self) -> str:
        return f"{self.value:.4f}"

    def to_answer(self) -> float:
        return self.value


class RatingRun(LabelledRun):
    """A trained rater."""


class RatingTask(LabelledTask):
    """Give a text a number."""

    name, summary, kind, head_config = "rating", "gives a text a number", NUMBERS, NumberConfig
    run_type = RatingRun
    pools = True
    default_measure = "pearson"

    def n_classes(self, config: RunConfig) -> int:
        return 8  # a loss that far above guessing the mean has exploded

    def fill_head(self, config: RunConfig, data: PreparedLabelled) -> RunConfig:
        head, labels = config.section("head", NumberConfig), np.array([e.label for e in data.train], dtype=np.float64)
        if head.spread is None and labels.std() == 0:
            raise RegardError(f"All training examples have the label {labels[0]:g}: there is nothing to tell apart.")
        centre = float(labels.mean()) if head.centre is None else head.centre
        spread = float(labels.std()) if head.spread is None else head.spread
        return config.with_section("head", head.replace(centre=centre, spread=spread))

    def build_head(self, config: RunConfig, d_model: int, pool: str, layers: nn.Sequential | None) -> NumberHead:
        head = config.section("head", NumberConfig)
        centre = 0.0 if head.centre is None else head.centre
        return NumberHead(d_model, centre, head.spread or 1.0, pool, head.p_dropout, layers)

    def describe_trained_head(self, labels: Sequence[str]) -> dict[str, Any]:
        return {"centre": 0.0, "spread": 1.0}

    def make_targets(self, config: RunConfig, examples: Sequence[Example], windows: Sequence[Windows]) -> NDArray[Any]:
        return np.array([example.label for example in examples], dtype=np.float32)

    def read_output(
        self, config: RunConfig, model: Reader, output: Tensor, windows: Windows, texts: Sequence[str]
    ) -> NumberPrediction:
        return NumberPrediction(float(output))

    def ask_outcome(self, config: RunConfig, model: Reader, framed: Framed, at: int | None) -> Outcome:
        row = self.pooled_row(config, framed, at)
        return Outcome("the number", ("number",), lambda output: output[None], row, is_number=True)

    def make_judge(self, config: RunConfig, examples: Sequence[Example], measure: str) -> Correlation:
        return Correlation([float(example.label) for example in examples], measure)  # type: ignore[arg-type]

    def measure(
        self,
        config: RunConfig,
        examples: Sequence[Example],
        found: Sequence[NumberPrediction],
        skipped: Mapping[str, int],
    ) -> LabelledEvaluation:
        answers = [each.value for each in found]
        judges = {name: self.make_judge(config, examples, name) for name in MEASURES}
        figures = [measure_figure(judge, answers, MEASURES[name]) for name, judge in judges.items()]
        gold = judges["pearson"].gold
        gap = [abs(a - g) for a, g in zip(answers, gold, strict=True)]
        figures.append(Figure("root mean square error", float(np.sqrt(np.mean(np.square(gap)))), 3))
        worst = sorted(range(len(gap)), key=lambda i: -gap[i])[:N_WORST]
        errors: list[dict[str, Any]] = [
            {"texts": examples[i].texts, "true": gold[i], "given": answers[i]} for i in worst
        ]
        lines = [f"  {e['given']:.2f}, true {e['true']:g}: {' ⇥ '.join(e['texts'])[:160]}" for e in errors]
        chosen = self.select_by(config)
        return LabelledEvaluation(
            figures=tuple(figures),
            headline=MEASURES["pearson" if chosen == "loss" else chosen],
            n_examples=len(examples),
            more={"errors": errors},
            details=tuple(list_under("the largest errors", lines)),
            skipped=skipped,
        )


RATING = RatingTask()
