"""The job of giving every word of a text a tag: its part of speech, or whether it names somebody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from regard.config import RunConfig
from regard.data.labelled import TAGS, Example
from regard.data.labelled_splits import PreparedLabelled
from regard.data.labelled_windows import TextFramer, Windows
from regard.lens.prediction import choose_row
from regard.models.heads import IGNORED, Goal, TagHead
from regard.models.reader import Reader
from regard.score.calibration import Calibration, calibrate
from regard.score.classes import count_confusions
from regard.score.measured import Figure
from regard.score.tags import MEASURES, Tags, find_phrases, has_phrases, list_legal, score_by_kind
from regard.tasks.classification import balance, draw_confusions
from regard.tasks.labelled import LabelledTask
from regard.tasks.labelled_looking import Framed, Outcome
from regard.tasks.labelled_run import N_WORST, LabelledEvaluation, LabelledRun, list_under, measure_figure
from regard.tasks.reader_config import TagConfig, name_labels

MAX_MARKED = 20  # wrong words of one sentence in the list of errors
N_DECODED = 512
"""Sentences whose tags are read together."""


@dataclass(frozen=True)
class TagPrediction:
    """A tag for every word, and the phrases that they mark."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probability: float
    """That all tags are right."""
    probabilities: tuple[float, ...]
    """That of each tag."""

    @property
    def phrases(self) -> list[dict[str, Any]]:
        return [
            {"kind": kind, "text": " ".join(self.words[first:end]), "first": first, "end": end}
            for kind, first, end in find_phrases(self.tags)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "words": list(self.words),
            "tags": list(self.tags),
            "phrases": self.phrases,
            "probability": self.probability,
            "probabilities": list(self.probabilities),
        }

    def to_text(self) -> str:
        tagged = " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))
        return f"{tagged}\t{self.probability:.4f}"

    def to_answer(self) -> str:
        return " ".join(self.tags)


class TaggingRun(LabelledRun):
    """A trained tagger."""


class TaggingTask(LabelledTask):
    """Tag the words of a text."""

    name, summary, kind, head_config = "tagging", "tags the words of a text", TAGS, TagConfig
    run_type = TaggingRun
    example = "--data train.conll"
    default_measure = "f1"
    unit = "word"

    def n_texts(self, config: RunConfig) -> int:
        return 1

    def count_units(self, example: Example) -> int:
        return len(_tags(example))

    def fill_head(self, config: RunConfig, data: PreparedLabelled) -> RunConfig:
        head, seen = config.section("head", TagConfig), {tag for e in data.train for tag in _tags(e)}
        labels = tuple(sorted(seen)) if head.labels is None else head.labels
        select_by = head.select_by or self.describe_trained_head(labels)["select_by"]
        return config.with_section("head", head.replace(labels=labels, select_by=select_by))

    def build_head(self, config: RunConfig, d_model: int, pool: str, layers: nn.Sequential | None) -> TagHead:
        head = config.section("head", TagConfig)
        legal = list_legal(_labels(config))
        return TagHead(d_model, self.n_classes(config), head.has_crf, head.p_dropout, layers, legal)

    def describe_trained_head(self, labels: Sequence[str]) -> dict[str, Any]:
        return {"labels": list(labels), "select_by": "f1" if has_phrases(labels) else "accuracy"}

    def goal(self, config: RunConfig, data: PreparedLabelled) -> Goal:
        head = config.section("head", TagConfig)
        return Goal(head.smoothing, balance(_labels(config), [t for e in data.train for t in _tags(e)], head.weights))

    def frame_with(self, framer: TextFramer, texts: Sequence[str]) -> Windows:
        return framer.frame_words(self.read_texts(texts)[0])

    def read_texts(self, texts: Sequence[str]) -> Sequence[str]:
        return [" ".join(texts[0].split())]

    def ask_outcome(self, config: RunConfig, model: Reader, framed: Framed, at: int | None) -> Outcome:
        words, crf = framed.text.split(), model.head.crf
        word = choose_row(at, len(words), "words are counted from 0")

        def read(output: Tensor) -> Tensor:
            u = output[: len(words)]
            return u[word].log_softmax(dim=-1) if crf is None else crf.log_marginals(u)[word]

        what = f"the tag of '{words[word]}'"
        return Outcome(what, _labels(config), read, int(framed.windows.places[word, 1]))

    def make_targets(self, config: RunConfig, examples: Sequence[Example], windows: Sequence[Windows]) -> NDArray[Any]:
        number = {label: k for k, label in enumerate(_labels(config))}
        found = np.full((len(examples), max(len(_tags(e)) for e in examples)), IGNORED, dtype=np.int64)
        for row, example in zip(found, examples, strict=True):
            row[: len(_tags(example))] = [number.get(tag, IGNORED) for tag in _tags(example)]
        return found

    def read_outputs(
        self,
        config: RunConfig,
        model: Reader,
        outputs: Sequence[Tensor],
        windows: Sequence[Windows],
        texts: Sequence[Sequence[str]],
    ) -> list[TagPrediction]:
        """Sentences of like lengths are decoded together: a random field goes from word to word."""
        words, labels, head = [tuple(each[0].split()) for each in texts], _labels(config), model.head
        order = sorted(range(len(words)), key=lambda i: len(words[i]))
        found: dict[int, TagPrediction] = {}
        for begin in range(0, len(order), N_DECODED):
            chosen = order[begin : begin + N_DECODED]
            u = pad_sequence([outputs[i][: len(words[i])] for i in chosen], batch_first=True)
            lengths = torch.tensor([len(words[i]) for i in chosen])
            u, mask = u.to(head.out.weight.device), torch.arange(u.shape[1])[None] < lengths[:, None]
            tags, whole, each = (part.tolist() for part in head.best_tags(u, mask.to(u.device)))
            for row, i in enumerate(chosen):
                n = len(words[i])
                given = tuple(labels[tag] for tag in tags[row][:n])
                found[i] = TagPrediction(words[i], given, whole[row], tuple(each[row][:n]))
        return [found[i] for i in range(len(words))]

    def make_judge(self, config: RunConfig, examples: Sequence[Example], measure: str) -> Tags:
        return Tags([_tags(example) for example in examples], measure)

    def show_label(self, example: Example) -> str:
        return " ".join(_tags(example))

    def measure(
        self,
        config: RunConfig,
        examples: Sequence[Example],
        found: Sequence[TagPrediction],
        skipped: Mapping[str, int],
    ) -> LabelledEvaluation:
        answers, gold = [each.tags for each in found], [_tags(example) for example in examples]
        is_phrases = has_phrases(_labels(config))
        names = ("f1", "accuracy") if is_phrases else ("accuracy",)
        figures = [measure_figure(self.make_judge(config, examples, n), answers, MEASURES[n]) for n in names]
        calibration = calibrate_tags(found, gold)
        figures.append(Figure("calibration error, %", 100 * calibration.ece))
        labels = tuple(sorted({tag for tags in gold for tag in tags} | set(_labels(config))))
        confusions = count_confusions([t for tags in gold for t in tags], [t for tags in answers for t in tags], labels)
        wrong = [sum(a != b for a, b in zip(g, t, strict=True)) for g, t in zip(answers, gold, strict=True)]
        worst = [i for i in sorted(range(len(wrong)), key=lambda i: -wrong[i])[:N_WORST] if wrong[i]]
        errors = [{"words": found[i].words, "true": gold[i], "given": answers[i]} for i in worst]
        by_kind = score_by_kind(gold, answers) if is_phrases else {}
        lines = [
            f"  {kind}: F1 {s['f1']:.2f}, precision {s['precision']:.2f}, recall {s['recall']:.2f}, {s['n']:,} true"
            for kind, s in by_kind.items()
        ]
        listed = [f"  {wrong[i]} wrong: {mark_errors(found[i].words, answers[i], gold[i])[:200]}" for i in worst]
        chosen = self.select_by(config)
        return LabelledEvaluation(
            figures=tuple(figures),
            headline=MEASURES[chosen if chosen in names else names[0]],
            n_examples=len(examples),
            more={
                "labels": list(labels), "confusions": confusions, "kinds": by_kind, "errors": errors,
                "calibration": calibration.to_dict(),
            },
            details=(
                *lines,
                *draw_confusions(labels, confusions),
                *calibration.draw(),
                *list_under("the sentences with the most errors", listed),
            ),
            skipped=skipped,
        )  # fmt: skip


def calibrate_tags(found: Sequence[TagPrediction], gold: Sequence[Sequence[str]]) -> Calibration:
    """The calibration of tags, word by word."""
    pairs = list(zip(found, gold, strict=True))
    is_right = [tag == true for each, tags in pairs for tag, true in zip(each.tags, tags, strict=True)]
    return calibrate([p for each, _ in pairs for p in each.probabilities], is_right)


def mark_errors(words: Sequence[str], tags: Sequence[str], gold: Sequence[str]) -> str:
    """Words, and for those that are wrong the given and the true tag; it ends after MAX_MARKED that are wrong.

    >>> mark_errors(["Anna", "barks"], ["O", "O"], ["B-PER", "O"])
    'Anna[O, true B-PER] barks'
    """
    shown, n_wrong = list[str](), 0
    for word, given, true in zip(words, tags, gold, strict=True):
        n_wrong += given != true
        if n_wrong > MAX_MARKED:
            return " ".join([*shown, "..."])
        shown.append(word if given == true else f"{word}[{given}, true {true}]")
    return " ".join(shown)


def _tags(example: Example) -> tuple[str, ...]:
    assert isinstance(example.label, tuple)
    return example.label  # type: ignore[return-value]


def _labels(config: RunConfig) -> tuple[str, ...]:
    return name_labels(config.section("head", TagConfig))


TAGGING = TaggingTask()
