"""A trained reader in the hands of a user, and how good its answers are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from regard.data.labelled import Example
from regard.data.labelled_config import LabelledConfig
from regard.data.labelled_splits import Examples, read_labelled
from regard.data.labelled_windows import Windows
from regard.data.split import describe_skipped
from regard.decode.lines import LinesDone, decode_lines
from regard.errors import RegardError
from regard.lens.prediction import Prediction
from regard.lens.trace import Trace
from regard.models.reader import Reader
from regard.score.judges import Judge, score_interval
from regard.score.measured import Figure, Measured
from regard.score.significance import take_sample
from regard.tasks.base_run import Run
from regard.tasks.labelled_looking import Framed, frame_text, predict_outcome, trace_reader
from regard.tasks.labelled_objective import MAX_TOKENS, ask, read_windows
from regard.tasks.task import check_split, reopen_data

N_WORST = 10
"""Errors that an evaluation lists."""


class LabelledAnswer(Protocol):
    """One answer about a text."""

    def to_dict(self) -> dict[str, Any]: ...

    def to_text(self) -> str:
        """On one line, as `regard predict` prints it."""

    def to_answer(self) -> Any:
        """The plain value that is judged."""


@dataclass(frozen=True)
class LabelledEvaluation:
    """How good answers are: figures with intervals, and what is behind them."""

    figures: tuple[Figure, ...]
    headline: str
    n_examples: int
    more: Mapping[str, Any]
    """What --json has beside the figures: confusions, errors, calibration, the shares of a learned mix of layers."""
    details: tuple[str, ...] = ()
    signature: str = ""
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for figure in self.figures:
            found[figure.name] = {"value": figure.value}
            if figure.interval is not None:
                found[figure.name]["interval"] = list(figure.interval)
        return {"n_examples": self.n_examples, "scores": found, **self.more, "skipped": dict(self.skipped)}

    def measure(self) -> Measured:
        left_out = (f"{describe_skipped(self.skipped, 'examples')}.",) if self.skipped else ()
        return Measured(
            figures=self.figures,
            headline=self.headline,
            is_higher_better=True,
            counts={"examples": self.n_examples},
            signature=self.signature,
            details=self.details,
            notes=(*self.notes, *left_out),
        )


def measure_figure(judge: Judge, answers: Sequence[Any], name: str) -> Figure:
    """The score of answers with its interval over the items; none where all items have the same score."""
    counts = judge.counts(answers)[None]
    estimate = take_sample(judge.score, counts, range(len(answers))).estimate
    return Figure(name, estimate.value, 2, score_interval(judge, estimate))


def list_under(title: str, lines: Sequence[str]) -> list[str]:
    """Lines under their title with room around them; nothing where there are none."""
    return ["", title, *lines, ""] if lines else []


class LabelledRun(Run):
    """A trained reader: predict and evaluate."""

    model: Reader
    verbs = ("predict", "evaluate", "trace", "prediction")

    def _text_of_split(self, split: Sequence[Example], n_chars: int) -> str:
        """The texts of a split, one a line."""
        lines, n = [], 0
        for example in split:
            lines += [text.replace("\n", " ") for text in example.texts]
            n = n + sum(map(len, example.texts)) + len(example.texts)
            if n > n_chars:
                break
        return "\n".join(lines)

    @property
    def has_segments(self) -> bool:
        return self.task.n_segments(self.config) > 0  # type: ignore[attr-defined, no-any-return]

    @property
    def text_columns(self) -> tuple[str | None, ...]:
        """The columns of the one or two texts that an example has, by name or number; None: those that usually are."""
        data = self.config.section("data", LabelledConfig)
        return (data.text, data.second)[: self.task.n_texts(self.config)]  # type: ignore[attr-defined, return-value]

    def predict(self, items: Iterable[Any], *, max_tokens: int = MAX_TOKENS, window: int = 2000) -> Iterator[Any]:
        """One prediction an item, in their order; a window of them is held at a time.

        An item is a text, or a pair: two texts, or a question and a passage.
        """
        if isinstance(items, str):
            raise RegardError(f"Give a list of texts, not one text: run.predict([{items[:40]!r}]).")
        for found in self._decode(items, self._read_item, max_tokens, window, None):
            if found is None:
                raise RegardError("A text is empty: there is nothing to predict from.")
            yield found

    def lines(
        self,
        lines: Iterable[str | None],
        *,
        max_tokens: int = MAX_TOKENS,
        window: int = 2000,
        skips_long: bool = False,
        progress: Callable[[LinesDone], None] | None = None,
    ) -> Iterator[Any]:
        """One prediction a line, None for an empty one; two texts have a tab between them.

        With `skips_long` a line with another number of texts gives None too, and is counted as skipped, as is a None
        in place of a line. No line is too long: long texts are read in windows.
        """
        numbers = count(1)

        def read(line: str | None) -> _Asked | None:
            number, why = next(numbers), "" if line is None else self._count_columns(line)
            if why and not skips_long:
                raise RegardError(f"Line {number}: {why} To leave out such lines: --skip-bad (in Python: skips_long).")
            return None if why or line is None else self._read_item(line)

        return self._decode(lines, read, max_tokens, window, progress)

    def _decode(
        self,
        items: Iterable[Any],
        read: Callable[[Any], Any],
        max_tokens: int,
        window: int,
        progress: Callable[[LinesDone], None] | None,
    ) -> Iterator[Any]:
        return decode_lines(
            items, read, self._answer, empty=None, max_tokens=max_tokens, window=window, progress=progress
        )

    def _count_columns(self, line: str) -> str:
        """What is wrong with a line's columns; empty: nothing."""
        n, wanted = line.count("\t") + 1, self.task.n_texts(self.config)  # type: ignore[attr-defined]
        if not line.strip() or n == wanted or (wanted == 1):
            return ""
        what = self.task.columns  # type: ignore[attr-defined]
        return f"'{line[:60]}' has {n} column{'s' * (n != 1)}, and {what} are wanted, with a tab between them."

    def _read_item(self, item: Any) -> _Asked:
        if isinstance(item, str):
            if why := self._count_columns(item):
                raise RegardError(why)
            item = item.split("\t") if self.task.n_texts(self.config) == 2 else [item]  # type: ignore[attr-defined]
        texts = tuple(item)
        if len(texts) != self.task.n_texts(self.config) or not all(isinstance(t, str) for t in texts):  # type: ignore
            raise RegardError(f"{item!r:.80} is not what '{self.folder}' reads: {self.task.columns}.")  # type: ignore
        texts = tuple(text.strip() for text in texts)
        if not all(texts):
            return _Asked((), None)
        return _Asked(texts, self.task.frame(self.config, self.tokenizers[0], self.model, texts))  # type: ignore

    def trace(self, item: Any) -> Trace:
        """What the model computed of one item, a text or a pair: attention, states, cells, by token."""
        return trace_reader(self.model, self._frame_one(item), self.has_segments)

    def prediction(self, item: Any, *, at: int | None = None, target: int | str | None = None) -> Prediction:
        """The answer about one item as a prediction to be explained.

        `at` is the word whose tag is asked, where there is one for each; `target` the answer whose probability is
        explained, by its name or number, None: the most probable one.
        """
        framed = self._frame_one(item)
        outcome = self.task.ask_outcome(self.config, self.model, framed, at)  # type: ignore[attr-defined]
        return predict_outcome(self.model, framed, self.has_segments, outcome, target)

    def _frame_one(self, item: Any) -> Framed:
        asked = self._read_item(item)
        if asked.windows is None:
            raise RegardError("The text is empty: there is nothing to look into.")
        framer = self.task.framer(self.config, self.tokenizers[0], self.model)  # type: ignore[attr-defined]
        return frame_text(framer, asked.windows, self.task.read_texts(asked.texts))  # type: ignore[attr-defined]

    def _answer(self, asked: list[_Asked]) -> list[Any]:
        windows = [each.windows for each in asked if each.windows is not None]
        outputs = read_windows(self.model, windows, self.has_segments).cpu()
        texts = [one.texts for one in asked if one.windows is not None]
        read = self.task.read_outputs  # type: ignore[attr-defined]
        return read(self.config, self.model, list(outputs), windows, texts)  # type: ignore[no-any-return]

    def answer_examples(self, examples: Sequence[Example], tell: Callable[[int], None] = lambda n: None) -> list[Any]:
        """A prediction for each example."""
        windows = [self.task.frame(self.config, self.tokenizers[0], self.model, e.texts) for e in examples]  # type: ignore
        found: dict[int, Any] = {}
        for chosen, outputs in ask(self.model, windows, self.has_segments):
            read = self.task.read_outputs  # type: ignore[attr-defined]
            texts = [examples[i].texts for i in chosen]
            some = read(self.config, self.model, list(outputs.cpu()), [windows[i] for i in chosen], texts)
            found |= zip(chosen, some, strict=True)
            tell(len(found))
        return [found[i] for i in range(len(examples))]

    def examples_of(
        self, data: str | Sequence[str] | None, split: str, skips_bad: bool = False
    ) -> tuple[Examples, Mapping[str, int]]:
        """A split of the run's own examples, or others, and what was left out of these."""
        if data is None:
            own: Examples = getattr(reopen_data(self.task, self.opened), check_split(split))
            if not own:
                raise RegardError(f"The {split} split is empty. Name other examples: --data (in Python: data).")
            return own, {}
        config = self.config.section("data", LabelledConfig)
        names = (data,) if isinstance(data, str) else tuple(data)
        named = tuple(f"{n}@{split}" if n.startswith("grammar:") and "@" not in n else n for n in names)
        other = config.replace(train=named, valid=None, test=None, max_examples=None)
        other = other.replace(skips_bad=skips_bad or config.skips_bad)
        labels = self.config.section("head", object).to_dict().get("labels") or ()  # type: ignore
        return read_labelled(other, self.task.kind, labels)  # type: ignore[attr-defined]

    def evaluate(
        self, data: str | Sequence[str] | None = None, *, split: str = "test", skips_bad: bool = False
    ) -> LabelledEvaluation:
        """Score the run on a split of its own examples, or on others."""
        examples, skipped = self.examples_of(data, split, skips_bad)
        return self.evaluate_examples(examples, skipped)

    def evaluate_examples(self, examples: Examples, skipped: Mapping[str, int] | None = None) -> LabelledEvaluation:
        """Score the run on examples that are read already; a learned mix of layers is told with the scores."""
        answers = self.answer_examples(examples)
        found: LabelledEvaluation = self.task.measure(self.config, examples, answers, skipped or {})  # type: ignore
        if (mix := self.model.choice.mix) is None:
            return found
        notes = (*found.notes, self.model.choice.describe_mix())
        return replace(found, notes=notes, more={**found.more, "mix": mix.shares.tolist()})


@dataclass(frozen=True)
class _Asked:
    """Texts that are asked about; none where a line is empty."""

    texts: tuple[str, ...]
    windows: Windows | None

    def __len__(self) -> int:
        return 0 if self.windows is None else len(self.windows)
