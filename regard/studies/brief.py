"""What studies look at: small models, trained for a moment in a folder that goes away, or runs of the user's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.builtin.grammar import Grammar
from regard.data.builtin.grammar.meaning import LANGUAGES
from regard.data.config import DataConfig
from regard.data.prepared_text import PreparedText, prepare_text
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.models.table import model_config, model_entry
from regard.studies.config import GradientsConfig, RecencyConfig
from regard.studies.trainer import Trainer, Training
from regard.tasks import gradient
from regard.tasks.language_model import LANGUAGE_MODEL
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.table import AnyRun, build_config, task_of
from regard.tasks.task import reopen_data
from regard.tasks.translation import TranslationRun
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress

DATA = "python-docs"
VOCAB_SIZE = 512  # tokens of BPE: short words and parts of words
# Many small updates, and large ones: after 1,500 of 8 x 64 tokens a Transformer of width 64 heeds the word four places
# back (0.12 nats where it is replaced); after 1,000 of 16 x 64 at the default rate of 1e-3, hardly (0.003).
N_BATCH, RATE = 8, 5e-3
MAX_TOKENS = 1024  # an update of models that read pairs

T = TypeVar("T")


class SeededConfig(Protocol):
    """The settings of a study that trains over seeds."""

    @property
    def seed(self) -> int: ...

    @property
    def n_seeds(self) -> int: ...


@dataclass(frozen=True)
class Subject:
    """A model to look at, and the text to look at it with."""

    name: str
    run: LanguageModelRun
    text: Stream

    def n_readable(self, most: int) -> int:
        """How many tokens it can be given at once, `most` or fewer: no position that was never trained is read."""
        limit, config = self.run.next_token.max_context, self.run.config
        if limit is None:
            return most
        began_elsewhere = config.folders.get("start_from") is not None
        n_trained = limit if began_elsewhere else config.train.n_context or limit
        return min(most, limit, n_trained)


def each_seed_of(
    config: GradientsConfig | RecencyConfig,
    runs: Sequence[LanguageModelRun],
    wanted: Mapping[str, Any],
    trainer: Trainer,
) -> Iterator[tuple[int, list[Subject]]]:
    """Every seed with what to look at: the user's runs; or where there are none the study's own models.

    They are trained for a moment and learn from max_distance + 1 tokens at once: as many as are read, be it with the
    mark before a text or with the token just read. `wanted` are settings of the models, of which each takes those that
    it has. Each comes with `config.data`, or with what the run itself held out. Their folders end with the last seed.
    """
    seeds = seeds_of(config, runs, trainer.tell)
    if runs:
        named = name_runs(runs, [run.config.model_name for run in runs])
        subjects = [Subject(name, run, text_of(run, config.data)) for name, run in zip(named, runs, strict=True)]
        yield from ((seed, subjects) for seed in seeds)
        return
    models = {name: choose_settings(name, wanted) for name in config.models}
    tokenizer = {"kind": "bpe", "vocab_size": VOCAB_SIZE}
    data = config.data or DATA
    prepare_text(DataConfig(train=data), TokenizerConfig(**tokenizer), progress=trainer.tell)  # type: ignore[arg-type]
    with open_workplace() as folder:
        plan = {}
        for seed, (name, model) in product(list_seeds(config), models.items()):
            given: dict[str, dict[str, Any]] = {
                "data": {"train": data},
                "tokenizer": tokenizer,
                "model": {"name": name, **model},
                "optimizer": {"lr": RATE},
                "train": {"n_batch": N_BATCH, "n_context": config.max_distance + 1, "max_eval_tokens": 2048},
            }
            n_steps = max(1, config.n_steps)
            plan[seed, name] = Training(folder / f"{name}-{seed}", given, n_steps, seed, f"training {name}")
        trainer.train_ahead(plan.values(), folder / "logs")
        for seed in seeds:
            found = []
            for name in models:
                run = trainer.train(plan[seed, name])
                assert isinstance(run, LanguageModelRun)
                found.append(Subject(name, run, text_of(run, None)))
            yield seed, found


@contextmanager
def open_workplace() -> Iterator[Path]:
    """A folder for runs that nobody needs afterwards; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="regard-study-") as folder:
        yield Path(folder)


def plan_encoder(folder: Path, model: Mapping[str, Any], n_steps: int, seed: int) -> Training:
    """The training of a small model of the words of python-docs, for a task to read its texts with."""
    given: dict[str, Mapping[str, Any]] = {
        "data": {"train": DATA},
        "tokenizer": {"kind": "word", "vocab_size": None if model["name"] == "elmo" else 4096},
        "model": model,
        "optimizer": {"lr": RATE},
        "train": {"n_batch": N_BATCH, "n_context": 64, "max_eval_tokens": 2048},
    }
    return Training(folder, given, n_steps, seed, f"pre-training {model['name']}")


def score_reader(run: AnyRun) -> tuple[str, float]:
    """The name of the score of a run that was trained for a task, and the score on its test examples."""
    best = run.evaluate(split="test").measure().best
    return best.name, best.value


def text_of(run: LanguageModelRun, data: str | None) -> Stream:
    """The text a run is measured on: `data`, or what the run itself held out."""
    if data is not None:
        return run.text_of(data)
    prepared: PreparedText = reopen_data(LANGUAGE_MODEL, run.opened, option="--set data=FILE")
    return prepared.test if len(prepared.test) else prepared.valid


def name_runs(runs: Sequence[LanguageModelRun | TranslationRun], kinds: Sequence[str]) -> list[str]:
    """Folder names where these tell the runs apart, whole paths where they do not; each with its kind."""
    short = [run.folder.resolve().name for run in runs]
    names = short if len(set(short)) == len(short) else [str(run.folder) for run in runs]
    return [name if name == kind else f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)]


def choose_settings(name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings `wanted` that the model called `name` has; refused where they do not fit together.

    What stays null when all is written out follows from the rest, such as the width of an RNN's state.
    """
    default = model_config(name).fill_in().to_dict()
    chosen = {key: value for key, value in wanted.items() if default.get(key) is not None}
    model_config(name, chosen)
    return chosen


def find_width(given: Callable[[int], Mapping[str, Any]], n_parameters: int) -> tuple[int, int]:
    """The even width whose run has the number of parameters nearest to what is wanted, and that number.

    `given` makes the plain config of a run of a width.
    """
    first = build_config(given(2))
    task: Any = task_of(first)
    data = task.prepare(first)

    def count(width: int) -> int:
        outline = gradient.outline(task, task.fill_in(build_config(given(width)), data), data)
        return sum(p.numel() for p in outline.parameters())

    low, high = 2, 4
    while count(high) < n_parameters:
        low, high = high, 2 * high
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (middle, high) if count(middle) < n_parameters else (low, middle)
    width = min((low, high), key=lambda each: abs(count(each) - n_parameters))
    return width, count(width)


def count_parameters(given: Mapping[str, Any]) -> int:
    """How many parameters the run of a plain config has."""
    config = build_config(given)
    task: Any = task_of(config)
    data = task.prepare(config)
    return sum(p.numel() for p in gradient.outline(task, task.fill_in(config, data), data).parameters())


def refuse_counted(models: Sequence[str]) -> None:
    """Refuse models that no gradient flows through."""
    for name in models:
        if model_entry(name).is_counted:
            raise RegardError(f"The model '{name}' is counted: no gradient flows through it. Leave it out of models.")


def draw_stretches(subject: Subject, n_tokens: int, n: int, draws: np.random.Generator) -> NDArray[np.int64]:
    """n stretches of a text at places drawn evenly, (n, n_tokens); refused where the text is shorter, or one word."""
    n_needed = max(n_tokens, 2)
    if len(subject.text) < n_needed:
        raise RegardError(
            f"The text for '{subject.name}' has {len(subject.text)} tokens, and {n_needed} are needed. "
            "Lower max_distance, or name a longer text with --set data=FILE."
        )
    starts = draws.integers(0, len(subject.text) - n_tokens + 1, n)
    return np.stack([subject.text[s : s + n_tokens] for s in starts.tolist()])


def watch(what: str, items: Sequence[T], tell: Progress) -> Iterator[T]:
    """The items one by one, with word of how far it is."""
    for done, item in enumerate(items):
        tell(what, done, len(items))
        yield item
    tell(what, len(items), len(items))


def seeds_of(config: SeededConfig, runs: Sequence[object], tell: Progress) -> Iterator[int]:
    """The seeds of a study, one by one; the first alone where the user's runs are looked at, each one training."""
    return watch("seeds", list_seeds(config)[: 1 if runs else None], tell)


def list_seeds(config: SeededConfig) -> range:
    """The seeds that a study trains with."""
    return range(config.seed, config.seed + config.n_seeds)


def small_translator(d_model: int, vocab_size: int) -> dict[str, dict[str, Any]]:
    """The settings of an LSTM with attention, one layer each side."""
    lstm = {"encoder": "lstm", "decoder": "lstm", "attention": "mlp", "d_model": d_model, "n_layers": 1}
    return {
        "tokenizer": {"kind": "bpe", "vocab_size": vocab_size},
        "model": {"name": "seq2seq", **lstm},
        "teaching": {"max_tokens": MAX_TOKENS},
        "optimizer": {"lr": RATE},
    }


def describe_small_translator(d_model: int, vocab_size: int) -> str:
    """`small_translator` in words."""
    return (
        f"an LSTM with attention, one layer each side, width {d_model}, updates of {MAX_TOKENS:,} tokens of source and "
        f"target, learning rate {RATE:g}, a vocabulary of {vocab_size:,} pieces of words (BPE)"
    )


def describe_text(data: str | None, has_runs: bool) -> str:
    """Which text was measured on."""
    return data or ("each run's own held-out text" if has_runs else f"{DATA}, its test part")


def describe_runs(runs: Sequence[LanguageModelRun | TranslationRun]) -> str:
    """Which runs of the user's were measured."""
    return f"your runs: {', '.join(f'{run.folder} ({run.config.model_name})' for run in runs)}"


def describe_training(config: GradientsConfig | RecencyConfig) -> str:
    """How the models of `each_seed_of` were trained."""
    return (
        f"each trained for {config.n_steps:,} updates of {N_BATCH} x {config.max_distance + 1} tokens by `regard "
        f"train`, learning rate {RATE:g}"
    )


def describe_seeds(config: SeededConfig, runs: Sequence[object]) -> dict[str, str]:
    """Which seeds there were, and what an interval holds."""
    if runs:
        return {"Seed": f"{config.seed}, of the draws; each run is one training"}
    if config.n_seeds == 1:
        return {"Seed": f"{config.seed}; one training each: another seed gives somewhat other numbers"}
    seeds = f"{config.seed} to {config.seed + config.n_seeds - 1}, each with weights, batches and draws of its own"
    return {"Seeds": f"{seeds}; 95% intervals by Student's t, of the logarithms where an axis is logarithmic"}


def write_grammar(folder: Path, n_of: Mapping[str, int], seed: int, tell: Progress) -> None:
    """Sentences of the built-in grammar as aligned files, `train.en` and so on: so many of each split."""
    folder.mkdir(exist_ok=True)
    for split, n in n_of.items():
        with ExitStack() as stack:
            files = {
                language: stack.enter_context(open(folder / f"{split}.{language}", "w", encoding="utf-8"))
                for language in LANGUAGES
            }
            for done, sentence in enumerate(Grammar(seed).sentences(split, n)):
                tell(f"{split} sentences", done, n)
                for language, file in files.items():
                    file.write(sentence.text(language) + "\n")
