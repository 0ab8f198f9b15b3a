"""What words unseen in training cost a task: whole words, subwords and characters side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

from regard.data.labelled import Example
from regard.studies import brief
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import TENTHS, Spread, say_seeds, spread_of_scores
from regard.studies.reader_config import UNITS, UnitsConfig
from regard.studies.trainer import Trainer, Training
from regard.tasks.table import AnyRun
from regard.text.learning import Progress


@dataclass(frozen=True)
class Score:
    """How good one training is, on all that is tested and where words are new."""

    unit: str
    size: int
    """Labelled examples."""
    measured: str
    value: float
    on_new: float | None
    """Of words that the training texts do not have, or of texts with such words, the per cent that is right."""
    on_known: float | None
    new_words: float
    """The per cent of the test words that the training texts do not have."""
    tokens_per_word: float


def measure(config: UnitsConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train on every number of examples with every unit and seed."""
    trainer, found = Trainer(tell, n_jobs), []
    with brief.open_workplace() as folder:
        plan = [
            (unit, size, Training(
                folder / f"{unit}-{size}-{seed}", _given(config, unit, size), config.n_steps, seed,
                f"{UNITS[unit]}, {size:,} examples",
            ))
            for seed, size, unit in product(brief.list_seeds(config), config.sizes, config.units)
        ]  # fmt: skip
        trainer.train_ahead([training for *_, training in plan], folder / "logs")
        for unit, size, training in brief.watch("trainings", plan, tell):
            found.append(score_unit(trainer.train(training), UNITS[unit], size))
    return _finding(config, found)


def _given(config: UnitsConfig, unit: str, size: int) -> dict[str, Any]:
    """The plain config of a training: they differ in what a token is, and so in the rows of the embedding."""
    kinds = {"types": "word", "types+characters": "word", "characters": "char"}
    n_tokens = config.vocab_size if unit in ("wordpiece", "bpe") else None
    return {
        "task": config.task,
        "data": {"train": config.data, "max_examples": size},
        "tokenizer": {"kind": kinds.get(unit, unit), "vocab_size": n_tokens},
        "model": {"name": config.model, "d_model": config.d_model, "n_layers": 1},
        "optimizer": {"lr": config.lr},
        **({"words": {}} if unit == "types+characters" else {}),
    }


def score_unit(run: AnyRun, unit: str, size: int) -> Score:
    """Score a run on its test examples, and apart where words are new and where all are known."""
    reader: Any = run
    examples, known = reader.examples_of(None, "test")[0], list_words(reader.examples_of(None, "train")[0])
    answers = reader.answer_examples(examples)
    best = reader.task.measure(reader.config, examples, answers, {}).measure().best
    right: dict[bool, list[bool]] = {True: [], False: []}
    for example, answer in zip(examples, answers, strict=True):
        for is_new, is_right in judge_each(example, answer.to_answer(), known):
            right[is_new].append(is_right)
    words = [word for example in examples for text in example.texts for word in text.split()]
    n_tokens = sum(len(reader.tokenizers[0].encode(text)) for example in examples for text in example.texts)
    new_words = 100 * sum(word not in known for word in words) / len(words)
    on_new, on_known = (100 * fmean(right[is_new]) if right[is_new] else None for is_new in (True, False))
    return Score(unit, size, best.name, best.value, on_new, on_known, new_words, n_tokens / len(words))


def list_words(examples: Sequence[Example]) -> frozenset[str]:
    """The words of examples, as they stand between spaces."""
    return frozenset(word for example in examples for text in example.texts for word in text.split())


def judge_each(example: Example, answer: str, known: frozenset[str]) -> Iterator[tuple[bool, bool]]:
    """Whether something is new, and whether it is right: each word where each has a tag, else the text as a whole."""
    words = [word for text in example.texts for word in text.split()]
    if isinstance(example.label, tuple):
        for word, given, true in zip(words, answer.split(" "), example.label, strict=True):
            yield word not in known, given == true
        return
    yield not known.issuperset(words), answer == example.label


def _finding(config: UnitsConfig, found: Sequence[Score]) -> Finding:
    measured, what = found[0].measured, "words" if config.task == "tag" else "texts with words"
    units = [UNITS[unit] for unit in config.units]
    on_new = [(each.unit, each.size, each.on_new) for each in found if each.on_new is not None]
    least = min(config.sizes)
    compared = ", ".join(f"{unit} {_spread(found, unit, least, 'value').write(TENTHS)}" for unit in units)
    new_at = {size: fmean(each.new_words for each in found if each.size == size) for size in config.sizes}
    table = tuple(
        (
            f"{size:,}", TENTHS(new_at[size]), unit, f"{_mean(found, unit, size, 'tokens_per_word'):.2f}",
            *(_spread(found, unit, size, name).write(TENTHS) for name in ("value", "on_known", "on_new")),
        )
        for size, unit in product(config.sizes, units)
    )  # fmt: skip
    charts = [("By the number of labelled examples", measured, [(s.unit, s.size, s.value) for s in found])]
    if on_new:
        charts.append((f"Where {what} are new", "right, %", on_new))
    return Finding(
        question="What do words unseen in training cost a task?",
        sentence=f"{say_seeds(config.n_seeds)}, with {least:,} labelled examples {new_at[least]:.1f}% of the test "
        f"words are new, and {measured} is: {compared}.",
        charts=tuple(
            Chart(title, "labelled examples", label, lines_of(rows), is_x_log=True, is_y_log=False,
                  measured_at=tuple(map(float, config.sizes)))
            for title, label, rows in charts
        ),
        summary=Numbers(
            f"{measured} by labelled examples", ("unit", *(f"{size:,}" for size in config.sizes)),
            tuple(
                (unit, *(_spread(found, unit, size, "value").write(TENTHS) for size in config.sizes)) for unit in units
            ),
        ),
        tables=(
            Numbers(
                "Where words are new",
                ("examples", "new words, %", "unit", "tokens a word", measured, "known: right, %", "new: right, %"),
                table,
                note=f"A word is new where the training texts do not have it; the last columns are of {what} that are "
                "known, or new.",
            ),
        ),
        method={
            "Models": f"{config.model} of width {config.d_model}, one layer, from scratch",
            "Units": f"all words of the training texts; {config.vocab_size:,} subwords; characters; or words, each "
            "read by a vector and a convolution over its characters",
            "Training": f"{config.n_steps:,} updates, learning rate {config.lr:g}",
            "Texts": f"{config.data}, for the task {config.task}; scored on its test examples",
            **brief.describe_seeds(config, ()),
        },
        numbers={"measure": measured, "scores": [[s.unit, s.size, s.value, s.on_known, s.on_new] for s in found]},
    )  # fmt: skip


def _values(found: Sequence[Score], unit: str, size: int, name: str) -> list[float]:
    every = (getattr(each, name) for each in found if (each.unit, each.size) == (unit, size))
    return [value for value in every if value is not None]


def _mean(found: Sequence[Score], unit: str, size: int, name: str) -> float:
    return fmean(_values(found, unit, size, name))


def _spread(found: Sequence[Score], unit: str, size: int, name: str) -> Spread:
    """The mean of a score over seeds with its interval; not a number where nothing was there to be right."""
    values = _values(found, unit, size, name)
    return spread_of_scores(values) if values else Spread(float("nan"))
