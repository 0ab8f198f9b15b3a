"""A new kind of job is one file: counting vowels is trained, resumed, measured, predicted and compared by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import stop_at
from torch import Tensor, nn

import regard
from regard.config import RunConfig
from regard.data.cache import key_of
from regard.errors import InterruptedRunError
from regard.models.table import MODELS, ModelEntry
from regard.score.measured import Figure, Measured
from regard.settings import Settings, setting
from regard.tasks import gradient
from regard.tasks.base_run import Run
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.run_facts import RunFacts
from regard.tasks.table import TASKS
from regard.tasks.task import Evaluation, Fitting, Rehearsal, Usage
from regard.tasks.test_set import Comparing, Decoding, TestSet
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.training.config import TrainConfig
from regard.training.loop import train_by_gradient
from regard.training.objective import HostBatch, Objective, PartLoss, Score

N_CLASSES = 8


@dataclass(frozen=True, kw_only=True)
class LinesConfig(Settings):
    """Where the lines come from."""

    train: str = setting(doc="a file of lines")


@dataclass(frozen=True, kw_only=True)
class CounterConfig(Settings):
    """A bag of embeddings, and a layer."""

    d_model: int = setting(16, "width", low=1)


class Counter(nn.Module):
    """logits = W Σ E x"""

    def __init__(self, config: CounterConfig, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(0.1 * torch.randn(vocab_size, config.d_model))
        self.head = nn.Linear(config.d_model, N_CLASSES)

    def hidden(self, ids: Tensor, mask: Tensor) -> Tensor:
        return (self.embedding[ids] * mask[..., None]).sum(dim=1)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = self.head(self.hidden(ids, mask))
        return logits


@dataclass(frozen=True)
class Lines:
    """Lines, three quarters of them for training, and the tokenizer of their characters."""

    tokenizer: Tokenizer
    train: list[str]
    test: list[str]
    fingerprint: str

    def batch(self, lines: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, which of them are real, and the number of vowels, at most N_CLASSES - 1."""
        ids = [torch.from_numpy(self.tokenizer.encode(line).astype("int64")) for line in lines]
        padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
        mask = nn.utils.rnn.pad_sequence([torch.ones(len(i), dtype=torch.bool) for i in ids], batch_first=True)
        return padded, mask, torch.tensor([count_vowels(line) for line in lines])


def count_vowels(line: str) -> int:
    return min(N_CLASSES - 1, sum(letter in "aeiou" for letter in line))


class CountObjective(Objective):
    """loss = Σ -log P(number of vowels | line)"""

    carries_state, has_one_shape, select_by, memory_settings = False, False, "loss", "train.n_batch"
    bytes_per_token: float | None = None
    n_classes, n_target = N_CLASSES, 1

    def __init__(self, data: Lines, train: TrainConfig, seed: int) -> None:
        self.data, self.train, self.seed, self.n_rows = data, train, seed, train.n_batch
        self.per_epoch = max(1, len(data.train) // train.n_batch)
        self.flops_per_token = 100

    def identity(self) -> dict[str, Any]:
        return {"data": self.data.fingerprint, "seed": self.seed, "n_batch": self.train.n_batch}

    def read_row(self, model: Counter) -> Tensor:
        ids = torch.zeros(1, 9, dtype=torch.int64, device=model.embedding.device)
        return model.hidden(ids, torch.ones_like(ids, dtype=torch.bool))

    def output_weight(self, model: Counter) -> Tensor:
        return model.head.weight

    def at(self, index: int) -> HostBatch:
        chosen = torch.randint(len(self.data.train), (self.n_rows,), generator=torch.Generator().manual_seed(index))
        return HostBatch(self.data.batch([self.data.train[i] for i in chosen.tolist()]), self.n_rows, is_fresh=True)

    def body(self, model: Counter) -> Counter:
        return model

    def loss(self, model: Counter, body: Any, tensors: tuple[Tensor, ...], before: Any) -> PartLoss:
        ids, mask, counts = tensors
        nats = nn.functional.cross_entropy(body(ids, mask), counts, reduction="sum")
        return PartLoss(nats, nats, None)

    def evaluate(self, model: Counter) -> Score:
        ids, mask, counts = self.data.batch(self.data.test)
        with torch.inference_mode():
            nats = float(nn.functional.cross_entropy(model.eval()(ids, mask), counts))
        return Score(nats, None, criterion=nats)


@dataclass(frozen=True)
class CountEvaluation:
    accuracy: float
    n_lines: int

    def to_dict(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "n_lines": self.n_lines}

    def measure(self) -> Measured:
        figure = Figure("accuracy, %", 100 * self.accuracy)
        return Measured((figure,), figure.name, is_higher_better=True, counts={"lines": self.n_lines})


class CountRun(Run):
    """A trained counter of vowels."""

    def predict(self, items: Iterable[str]) -> Iterator[int]:
        lines = Lines(self.tokenizers[0], [], [], "")
        for item in items:
            ids, mask, _ = lines.batch([item])
            yield int(self.model(ids, mask).argmax())

    def evaluate(self, data: Any = None, *, split: str = "test") -> CountEvaluation:
        lines = COUNTING.prepare(self.config).test if data is None else Path(data).read_text().splitlines()
        right = [guess == count_vowels(line) for guess, line in zip(self.predict(lines), lines, strict=True)]
        return CountEvaluation(sum(right) / len(right), len(right))

    def trace(self, *texts: str) -> Any:
        raise NotImplementedError


class CountTask(gradient.GradientTask):
    """Count the vowels of a line."""

    name, verb, summary, example = "counting", "count", "counts vowels", "--data lines.txt"
    sections: Mapping[str, type[Settings]] = {"data": LinesConfig}
    run_type = CountRun

    def name_sources(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        return {"train": names[0]}

    def list_unused(self, config: RunConfig) -> Mapping[str, str]:
        return {"train.n_context": "a line is read whole"}

    def describe_sources(self, config: RunConfig) -> str:
        return config.section("data", LinesConfig).train

    def prepare(self, config: RunConfig, progress: Progress | None = None) -> Lines:
        lines = Path(self.describe_sources(config)).read_text().splitlines()
        n = 3 * len(lines) // 4
        tokenizer = train_tokenizer(TokenizerConfig(kind="char", vocab_size=None), lines[:n])
        return Lines(tokenizer, lines[:n], lines[n:], key_of(lines, tokenizer.hash))

    def objective(
        self, config: RunConfig, model: Counter, data: Lines, fitting: Fitting | None = None
    ) -> CountObjective:
        return CountObjective(data, config.train, config.seed)

    def rehearse(self, config: RunConfig, data: Lines, start: InitialWeights | None) -> Rehearsal:
        n_units = {"train": len(data.train), "test": len(data.test)}
        first = tuple(data.train[:2])
        return gradient.rehearse(self, config, data, start, n_units=n_units, first_batch=lambda _: first)

    def test(self, run: CountRun, data: Lines) -> Evaluation:
        return run.evaluate()

    def card_rows(self, config: RunConfig, facts: RunFacts, data: Lines) -> list[tuple[str, str]]:
        return [("training lines", str(len(data.train)))]

    def usage(self, config: RunConfig, folder: Path, data: Lines) -> Usage:
        return Usage(shell=(f"regard eval {folder}",), python=('next(run.predict(["a line"]))',))

    comparing = Comparing(items="lines", searches=False)

    def load_test_set(self, run: CountRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> TestSet:
        lines = self.prepare(run.config).test
        counts = tuple((str(count_vowels(line)),) for line in lines)
        fits = np.ones(len(lines), dtype=bool)
        return TestSet(about="lines", sources=tuple(lines), references=counts, fits=fits, fingerprint=key_of(lines))

    def answer(
        self, run: CountRun, test_set: TestSet, chosen: Sequence[int], decoding: Decoding, tell: Callable[[int], None]
    ) -> list[Any]:
        return list(run.predict([test_set.sources[i] for i in chosen]))

    def judge(self, test_set: TestSet, chosen: Sequence[int]) -> Accuracy:
        return Accuracy([int(test_set.references[i][0]) for i in chosen])


@dataclass
class Accuracy:
    """The share of lines whose number is right, in per cent."""

    wanted: Sequence[int]
    name: str = "accuracy"
    is_higher_better: bool = True
    signature: str = ""
    other_signatures: Mapping[str, str] = field(default_factory=dict)

    def counts(self, answers: Sequence[Any]) -> Any:
        return np.array([(guess == number, 1) for guess, number in zip(answers, self.wanted, strict=True)])

    def score(self, summed: Any, /) -> float:
        return float(100 * summed[0] / summed[1])

    def other_scores(self, runs: Sequence[Sequence[Any]]) -> dict[str, float]:
        return {}


COUNTING = CountTask()


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line in the table of tasks, and that of its model."""
    monkeypatch.setitem(TASKS, "counting", COUNTING)
    entry = ModelEntry(CounterConfig, Counter, "a bag of letters", "nobody", tasks=("counting",))
    monkeypatch.setitem(MODELS, "counter", entry)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    words = ("sky", "cat", "moon", "rhythm", "audio", "tree", "lynx", "boat")
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(f"{a} {b}" for _ in range(4) for a in words for b in words) + "\n")
    return path


def recipe(lines: Path) -> dict[str, Any]:
    return {
        "data": {"train": str(lines)},
        "model": {"name": "counter"},
        "optimizer": {"lr": 0.03},
        "train": {"max_steps": 150, "n_batch": 16, "eval_every": 50},
        "runtime": {"device": "cpu", "n_threads": 1},
        "checkpoint": {"has_tensorboard": False},
    }


def test_it_trains_is_measured_and_predicts(lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = regard.plan(recipe(lines))
    assert plan.n_parameters == sum(p.numel() for p in Counter(CounterConfig(), plan.vocab_size).parameters())
    assert plan.memory is not None
    regard.train(recipe(lines), out=tmp_path / "run")
    run: Any = regard.load(tmp_path / "run")
    assert isinstance(run, CountRun)
    assert run.evaluate().accuracy == 1.0
    assert list(run.predict(["cat sky", "audio moon"])) == [1, 6]
    assert "| accuracy, % | lines |" in (tmp_path / "run" / "README.md").read_text()
    assert "n_context" not in (tmp_path / "run" / "config.yaml").read_text()

    from regard.cli import app

    app(["eval", str(tmp_path / "run")], standalone_mode=False)
    assert "accuracy, %" in capsys.readouterr().out


def test_it_resumes_to_the_same_bits(lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    regard.train(recipe(lines), out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(gradient, "train_by_gradient", partial(train_by_gradient, on_step=stop_at(70)))
        with pytest.raises(InterruptedRunError):
            regard.train(recipe(lines), out=tmp_path / "parts")
    regard.train(out=tmp_path / "parts", resume=True)
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_its_runs_are_compared_finished_or_trained_under_one_budget(lines: Path, tmp_path: Path) -> None:
    good, bad = recipe(lines), recipe(lines)
    bad["train"] = {**bad["train"], "max_steps": 1}
    for name, given in (("good", good), ("bad", bad)):
        regard.train(given, out=tmp_path / name)
    finished = regard.compare([str(tmp_path / "good"), str(tmp_path / "bad")], out=tmp_path / "finished")
    assert finished.ranking == ("good", "bad")
    contenders = {"wide": {"model": {"name": "counter"}}, "narrow": {"model": {"name": "counter", "d_model": 1}}}
    plan = {"contenders": contenders, "data": {"train": str(lines)}, "budget": "2000tokens", "seeds": 2}
    trained = regard.compare(plan, out=tmp_path / "trained")
    assert set(trained.ranking) == {"wide", "narrow"}
    assert (tmp_path / "trained" / "report.html").exists()


def test_its_settings_are_its_own(lines: Path) -> None:
    with pytest.raises(regard.RegardError, match="'teaching' is only for translation, parsing and captions"):
        regard.plan({**recipe(lines), "teaching": {"smoothing": 0.1}})
    assert math.isfinite(regard.plan(recipe(lines)).memory.total)  # type: ignore[union-attr]
