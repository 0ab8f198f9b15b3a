"""The job of answering a question by a span of a passage, or by saying that the passage has no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import RunConfig
from regard.data.labelled import ANSWERS, Answer, Example
from regard.data.labelled_splits import PreparedLabelled
from regard.data.labelled_windows import TextFramer, Windows
from regard.errors import RegardError
from regard.models.heads import SpanHead, best_span
from regard.models.reader import Reader
from regard.score.calibration import calibrate
from regard.score.measured import Figure
from regard.score.spans import MEASURES, Spans
from regard.tasks.labelled import LabelledTask
from regard.tasks.labelled_looking import Framed, Outcome
from regard.tasks.labelled_run import N_WORST, LabelledEvaluation, LabelledRun, list_under, measure_figure
from regard.tasks.reader_config import SpanConfig


@dataclass(frozen=True)
class SpanPrediction:
    """The answer, where it stands in the passage, in characters, and its probability; empty: there is none."""

    text: str
    start: int | None
    end: int | None
    probability: float

    def to_dict(self) -> dict[str, Any]:
        place = {"start": self.start, "end": self.end}
        return {"answer": self.text or None, **place, "probability": self.probability}

    def to_text(self) -> str:
        return f"{' '.join(self.text.split())}\t{self.probability:.4f}"

    def to_answer(self) -> str:
        return self.text


class AnsweringRun(LabelledRun):
    """A trained reader that answers questions."""


class AnsweringTask(LabelledTask):
    """Answer a question from a passage."""

    name, summary, kind, head_config = "answering", "answers questions from a passage", ANSWERS, SpanConfig
    run_type = AnsweringRun
    columns = "a question and a passage"
    example = "--data squad.json"
    default_measure = "f1"
    unit = "question"

    def n_texts(self, config: RunConfig) -> int:
        return 2

    def n_classes(self, config: RunConfig) -> int:
        return 10_000  # two ends, each of about a hundred tokens

    def fill_head(self, config: RunConfig, data: PreparedLabelled) -> RunConfig:
        head = config.section("head", SpanConfig)
        if head.allows_none is not None:
            return config
        has_none = any(not example.label for example in data.train)
        return config.with_section("head", head.replace(allows_none=has_none))

    def build_head(self, config: RunConfig, d_model: int, pool: str, layers: nn.Sequential | None) -> SpanHead:
        return SpanHead(d_model, config.section("head", SpanConfig).p_dropout, layers)

    def describe_trained_head(self, labels: Sequence[str]) -> dict[str, Any]:
        return {"allows_none": False}

    def frame_with(self, framer: TextFramer, texts: Sequence[str]) -> Windows:
        return framer.frame_question(texts[0], texts[1])

    def make_targets(self, config: RunConfig, examples: Sequence[Example], windows: Sequence[Windows]) -> NDArray[Any]:
        pairs = zip(examples, windows, strict=True)
        return np.array([find_tokens(_answers(example), each.spans) for example, each in pairs], dtype=np.int64)

    def read_output(
        self, config: RunConfig, model: Reader, output: Tensor, windows: Windows, texts: Sequence[str]
    ) -> SpanPrediction:
        head = config.section("head", SpanConfig)
        scores = output[: 1 + len(windows.spans)].double()
        if len(scores) == 1:
            return SpanPrediction("", None, None, 1.0)
        i, j, p = best_span(scores, head.max_answer, bool(head.allows_none), head.threshold)
        if i == 0:
            return SpanPrediction("", None, None, p)
        start, end = windows.spans[i - 1][0], windows.spans[j - 1][1]
        text = texts[1][start:end]
        start += len(text) - len(text.lstrip())
        return SpanPrediction(text.strip(), start, start + len(text.strip()), p)

    def ask_outcome(self, config: RunConfig, model: Reader, framed: Framed, at: int | None) -> Outcome:
        if at is not None:
            raise RegardError("An answer begins where the model says: leave out `at`.")
        places = framed.windows.places[:, 1].tolist()
        choices = ("(no answer)", *(framed.tokens[t] for t in places))
        allows_none = bool(config.section("head", SpanConfig).allows_none)

        def read(output: Tensor) -> Tensor:
            begins = output[: len(choices), 0]
            if not allows_none:
                begins = torch.cat([begins.new_full((1,), -torch.inf), begins[1:]])
            return begins.log_softmax(dim=-1)

        return Outcome("the first token of the answer", choices, read, None)

    def make_judge(self, config: RunConfig, examples: Sequence[Example], measure: str) -> Spans:
        return Spans([[answer.text for answer in _answers(example)] for example in examples], measure)

    def show_label(self, example: Example) -> str:
        answers = _answers(example)
        return answers[0].text if answers else ""

    def measure(
        self,
        config: RunConfig,
        examples: Sequence[Example],
        found: Sequence[SpanPrediction],
        skipped: Mapping[str, int],
    ) -> LabelledEvaluation:
        answers = [each.text for each in found]
        judges = {name: self.make_judge(config, examples, name) for name in MEASURES}
        figures = [measure_figure(judge, answers, MEASURES[name]) for name, judge in judges.items()]
        counts = judges["f1"].counts(answers)
        calibration = calibrate([each.probability for each in found], [bool(row[1]) for row in counts])
        figures.append(Figure("calibration error, %", 100 * calibration.ece))
        wrong = [i for i in range(len(found)) if not counts[i, 1]]
        worst = sorted(wrong, key=lambda i: (counts[i, 0], -found[i].probability))[:N_WORST]
        errors: list[dict[str, Any]] = [
            {"texts": examples[i].texts, "true": self.show_label(examples[i]), "given": answers[i],
             "probability": found[i].probability}
            for i in worst
        ]  # fmt: skip
        lines = [f"  '{e['given']}', true '{e['true']}': {e['texts'][0][:100]}" for e in errors]
        chosen = self.select_by(config)
        return LabelledEvaluation(
            figures=tuple(figures),
            headline=MEASURES["f1" if chosen == "loss" else chosen],
            n_examples=len(examples),
            more={"errors": errors, "calibration": calibration.to_dict()},
            details=(*calibration.draw(), *list_under("the surest errors", lines)),
            signature=judges["f1"].signature,
            skipped=skipped,
        )


def _answers(example: Example) -> tuple[Answer, ...]:
    assert isinstance(example.label, tuple)
    return example.label  # type: ignore[return-value]


def find_tokens(answers: Sequence[Answer], spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The first and the last token of the first answer, counted from 1; (0, 0): there is no answer.

    >>> find_tokens([Answer(4, "old town")], [(0, 3), (3, 7), (7, 12), (12, 13)])
    (2, 3)
    """
    if not answers or not spans:
        return 0, 0
    start, end = answers[0].start, answers[0].start + len(answers[0].text)
    first = next((i for i, (_, stop) in enumerate(spans) if stop > start), len(spans) - 1)
    last = next((i for i in reversed(range(len(spans))) if spans[i][0] < end), first)
    return first + 1, max(first, last) + 1


ANSWERING = AnsweringTask()
