"""Training of word vectors: LSA in one go; word2vec and GloVe stretch by stretch, by rules of their own.

A step of theirs touches the rows of a thousand words, and one of the training loop every row of the model: that would
be slower by far. Random numbers follow from the seed and the number of the stretch, so a run that is stopped and
resumed gives the same bits as one that never was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import RunConfig
from regard.count.cooccurrence import Cooccurrence, count_cooccurrences
from regard.count.lsa import positive_mutual_information, reduce_by_svd
from regard.data.prepared_text import PreparedText
from regard.data.stream import Stream
from regard.errors import InterruptedRunError, RegardError
from regard.models import glove
from regard.models.subwords import SubwordIndex
from regard.models.trained_vectors import N_SPECIAL
from regard.models.word2vec import FINAL_RATE, Updater, Word2Vec, WordSampler
from regard.models.word_vectors_config import GloVeConfig, LSAConfig, Word2VecConfig
from regard.tasks.task import Fitting
from regard.text.tokenizer import Tokenizer
from regard.training import checkpoint as checkpoints
from regard.training.device import choose_threads, pick_device, session
from regard.training.metrics import Metrics, Speed, check_metrics
from regard.training.progress import Status
from regard.training.state import TrainState
from regard.training.stop import Interrupt, Limits, divergence_error
from regard.training.weights import write_weights
from regard.untrusted.fields import is_count

MAX_STRETCH, MIN_STRETCH, STRETCHES = 131_072, 16_384, 100
"""Words of a stretch: a hundredth of the training, within bounds. The learning rate changes from one to the next."""


@dataclass(frozen=True)
class Words:
    """The words of a text without <eos> and <unk>, and the line each is on."""

    ids: NDArray[np.int64]
    lines: NDArray[np.int64] | None

    @classmethod
    def of(cls, stream: Stream, within_lines: bool = False) -> Words:
        tokens = stream.tokens
        is_word = tokens >= N_SPECIAL
        lines = np.cumsum(tokens == 0)[is_word].astype(np.int64) if within_lines else None
        return cls(np.asarray(tokens)[is_word].astype(np.int64), lines)


def check_words(words: Words, data: PreparedText) -> None:
    """Refuse a text with fewer than two different words that are frequent enough."""
    n = data.tokenizer.vocab_size - N_SPECIAL
    if n < 2 or len(words.ids) < 2:
        raise RegardError(
            f"The vocabulary has {max(n, 0)} word{'' if n == 1 else 's'}: of the training text's {len(data.train):,} "
            "words too few are seen often enough. Give more text, or lower tokenizer.min_count: --set "
            "tokenizer.min_count=1"
        )


class Learner(Protocol):
    """What is learned stretch by stretch."""

    n_items: int
    """Words, or pairs of words, of one epoch."""
    unit: str
    """What `n_items` counts, in the plural."""

    def tensors(self) -> dict[str, Tensor]: ...

    def restore(self, tensors: dict[str, Tensor]) -> None: ...

    def learn(self, epoch: int, begin: int, end: int, lr: float, seed: int) -> tuple[float, int]:
        """Learn from the items from `begin` to `end` of an epoch; the loss of some of them, a sum, and of how many."""


class Word2VecLearner:
    """Skip-gram or CBOW on a text."""

    unit = "words"

    def __init__(self, config: RunConfig, words: Words, tokenizer: Tokenizer, device: torch.device) -> None:
        model = config.model
        assert isinstance(model, Word2VecConfig)
        self.words, self.n_items = words, len(words.ids)
        counts = np.bincount(words.ids, minlength=tokenizer.vocab_size)
        self.sampler = WordSampler(model, counts, device)
        self.model = Word2Vec.create(model, tokenizer.vocab_size, config.seed).to(device)
        index = index_subwords(model, tokenizer)
        self.updater = Updater(self.model, model, config.model_name == "cbow", index)

    def tensors(self) -> dict[str, Tensor]:
        return self.model.tensors()

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.model.tensors().items():
            tensor.copy_(tensors[name])

    def learn(self, epoch: int, begin: int, end: int, lr: float, seed: int) -> tuple[float, int]:
        lines = None if self.words.lines is None else self.words.lines[begin:end]
        stretch = self.sampler.sample(self.words.ids[begin:end], lines, seed)
        if not stretch.chunks:  # every word was left out as too frequent
            return 0.0, 0
        measured = self.updater.measure(stretch.chunks[0])
        for chunk in stretch.chunks:
            self.updater.update(chunk, stretch, lr)
        return measured


class GloVeLearner:
    """GloVe on the co-occurrence counts of a text."""

    unit = "pairs"

    def __init__(self, config: RunConfig, words: Words, tokenizer: Tokenizer, device: torch.device) -> None:
        own = config.model
        assert isinstance(own, GloVeConfig)
        self.config, self.seed = own, config.seed
        counted = count_pairs(own.window, words, tokenizer, is_harmonic=True)
        # Both orders of a pair are trained, as the matrix is symmetric and w and c are two tables.
        self.i, self.j = (torch.from_numpy(v).to(device) for v in (counted.rows, counted.columns))
        self.x = torch.from_numpy(counted.values).to(device, torch.float32)
        self.n_items = len(self.x)
        self.model = glove.GloVe.create(own, tokenizer.vocab_size, config.seed).to(device)
        self._order: tuple[int, Tensor] | None = None

    def tensors(self) -> dict[str, Tensor]:
        return self.model.tensors()

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.model.tensors().items():
            tensor.copy_(tensors[name])

    def learn(self, epoch: int, begin: int, end: int, lr: float, seed: int) -> tuple[float, int]:
        if self._order is None or self._order[0] != epoch:
            random = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            self._order = epoch, torch.randperm(self.n_items, generator=random).to(self.x.device)
        chosen = self._order[1][begin:end]
        loss = torch.zeros((), device=self.x.device)
        for some in torch.split(chosen, self.config.n_update):
            loss += glove.update(self.model, self.config, self.i[some], self.j[some], self.x[some], lr)
        return float(loss), len(chosen)


def index_subwords(config: Word2VecConfig, tokenizer: Tokenizer) -> SubwordIndex | None:
    """The n-gram rows of every word, where words have them."""
    if not config.has_subwords:
        return None
    words = [tokenizer.token_text(i) for i in range(tokenizer.vocab_size)]
    return SubwordIndex.of(words, config.min_n, config.max_n, config.n_buckets)


def count_pairs(window: int, words: Words, tokenizer: Tokenizer, *, is_harmonic: bool) -> Cooccurrence:
    return count_cooccurrences(words.ids, tokenizer.vocab_size, window, is_harmonic=is_harmonic, segments=words.lines)


def fit_by_counting(config: RunConfig, data: PreparedText, fitting: Fitting) -> None:
    """LSA: count, and reduce. A killed fit starts again from nothing, so there is no state."""
    own, folder = config.model, fitting.folder
    assert isinstance(own, LSAConfig)
    if fitting.resume and checkpoints.is_finished(folder) and (folder / checkpoints.MODEL).exists():
        fitting.reporter.note("Nothing was left to do: the run is finished, all of its text is counted.")
        return
    checkpoints.clean_run_folder(folder)
    words = Words.of(data.train, own.within_lines)
    fitting.reporter.start(f"co-occurrence counts of {len(words.ids):,} words, reduced to {own.d_model} numbers each")
    began = time.perf_counter()
    try:
        counts = count_pairs(own.window, words, data.tokenizer, is_harmonic=False)
        matrix = positive_mutual_information(counts, own.smoothing, own.shift)
        vectors = reduce_by_svd(matrix, own.d_model, own.power, config.seed).to(torch.float32)
    finally:
        fitting.reporter.stop()
    seconds = time.perf_counter() - began
    fitting.begin_writing()
    metrics = Metrics(folder, step=0, offset=0, has_tensorboard=False)
    metrics.write("train", 1, tokens=len(words.ids), flops=0, seconds=seconds, n_pairs=len(counts.values))
    metrics.close()
    write_weights({"words": vectors}, folder / checkpoints.MODEL, has_checksum=True)


def fit_by_steps(
    config: RunConfig, data: PreparedText, fitting: Fitting, on_step: Callable[[TrainState], bool] | None = None
) -> None:
    """word2vec and GloVe: learn until a limit is reached; InterruptedRunError where a person ended it before.

    Where `on_step`, called after every stretch, returns True, the run ends as by Ctrl-C.
    """
    folder, reporter, device = fitting.folder, fitting.reporter, pick_device(config.runtime.device)
    latest = checkpoints.latest_checkpoint(folder) if fitting.resume else None
    state = TrainState() if latest is None else checkpoints.load_state(latest)
    runtime = config.runtime
    if runtime.n_threads is None and device.type == "cpu":
        if latest is None:
            state.n_threads, note = choose_threads()
            reporter.note(note) if note is not None else None
        runtime = runtime.replace(n_threads=state.n_threads)
    words = Words.of(data.train, config.model.to_dict()["within_lines"])
    with session(runtime, config.seed), torch.inference_mode(), Interrupt() as interrupt:
        checkpoints.clean_run_folder(folder)
        kind = GloVeLearner if config.model_name == "glove" else Word2VecLearner
        learner: Learner = kind(config, words, data.tokenizer, device)
        run = _Run(config, learner, folder, state, latest, fitting.begin_writing)
        reporter.start(
            f"{learner.n_items:,} {learner.unit} an epoch on {device}" + (f", from {latest.name}" if latest else "")
        )
        try:
            for status in run.steps():
                reporter.show(status)
                is_stopped = interrupt.is_asked or (on_step is not None and on_step(state))
                if is_stopped or run.is_save_due():
                    run.save()
                if is_stopped and run.find_reached() is None:
                    raise InterruptedRunError(
                        f"Stopped at step {state.step}; all is saved. Continue with: regard train --resume --out "
                        f"{folder}"
                    )
            run.save()
        finally:
            reporter.stop()
            run.metrics.close()


class _Run:
    """A run while it learns: its counters, and the files that it keeps up to date. A step is a stretch of the text."""

    def __init__(
        self,
        config: RunConfig,
        learner: Learner,
        folder: Path,
        state: TrainState,
        latest: Path | None,
        begin_writing: Callable[[], None],
    ) -> None:
        self.config, self.learner, self.folder, self.state = config, learner, folder, state
        self.highest_lr: float = config.model.to_dict()["lr"]
        epochs = config.train.max_epochs or 1.0
        wanted = min(config.train.max_tokens or math.inf, epochs * learner.n_items) / STRETCHES
        self.n_stretch = int(min(max(wanted, MIN_STRETCH), MAX_STRETCH, learner.n_items))
        self.per_epoch = -(-learner.n_items // self.n_stretch)
        self.limits = Limits.of(config.train, self.per_epoch)
        self.speed, self.saved_at = Speed(), time.monotonic()
        # What decides where stretches begin: other limits may not move them in a run that goes on.
        self.started_with: dict[str, Any] = {"n_stretch": self.n_stretch, "n_items": learner.n_items}
        if latest is not None:
            self._restore(latest)
        check_metrics(folder, state.metrics_offset)
        begin_writing()
        self.metrics = Metrics(
            folder, step=state.step, offset=state.metrics_offset, has_tensorboard=config.checkpoint.has_tensorboard
        )

    def _restore(self, latest: Path) -> None:
        saved = checkpoints.load_checkpoint(latest)
        for name in self.started_with:
            if not is_count(n := saved.started_with.get(name)) or n == 0:
                raise checkpoints.damage_error(latest, f"state.json has no number of what was begun with, '{name}'")
        if saved.started_with["n_items"] != self.learner.n_items:
            raise RegardError(
                f"Cannot resume {self.folder}: its text had {saved.started_with['n_items']:,} {self.learner.unit} and "
                f"has {self.learner.n_items:,} now. Train a new run."
            )
        self.started_with = saved.started_with
        self.n_stretch = saved.started_with["n_stretch"]
        self.per_epoch = -(-self.learner.n_items // self.n_stretch)
        self.limits = Limits.of(self.config.train, self.per_epoch)
        with checkpoints.explain_other_tensors(latest):
            self.learner.restore(saved.tensors["model"])

    def find_reached(self) -> str | None:
        return self.limits.find_reached(self.state)

    def steps(self) -> Iterator[Status]:
        """Learn from stretch after stretch until a limit is reached."""
        state = self.state
        while self.find_reached() is None:
            epoch, place = divmod(state.step, self.per_epoch)
            begin = place * self.n_stretch
            end = min(begin + self.n_stretch, self.learner.n_items)
            progress = self.limits.progress(state)
            # GloVe's AdaGrad makes its own steps smaller.
            lr = self.highest_lr * (1.0 if self.config.model_name == "glove" else max(FINAL_RATE, 1 - progress))
            began = time.perf_counter()
            loss, n = self.learner.learn(epoch, begin, end, lr, (self.config.seed * 1_000_003 + state.step) % 2**63)
            seconds = time.perf_counter() - began
            nats = loss / n if n else 0.0
            if not math.isfinite(nats):
                raise divergence_error(
                    f"the loss is {nats}", state.step + 1, lr, checkpoints.latest_checkpoint(self.folder)
                )
            state.step, state.tokens, state.seconds = (
                state.step + 1,
                state.tokens + end - begin,
                state.seconds + seconds,
            )
            self.speed.count(end - begin, seconds)
            speed = self.speed.tokens_per_second
            if state.step % self.config.checkpoint.log_every == 0 or self.find_reached() is not None:
                self.metrics.write(
                    "train", state.step, tokens=state.tokens, flops=0, seconds=state.seconds, nats_per_token=nats,
                    lr=lr, tokens_per_second=speed,
                )  # fmt: skip
            yield Status(
                state.step,
                self.limits.progress(state),
                state.seconds,
                nats,
                None,
                speed,
                unit=self.learner.unit.removesuffix("s"),
            )

    def is_save_due(self) -> bool:
        every, seconds = self.config.checkpoint.every_steps, self.config.checkpoint.every_seconds
        if every is not None and self.state.step % every == 0:
            return True
        return seconds is not None and time.monotonic() - self.saved_at >= seconds

    def save(self) -> None:
        """Write the weights, and a checkpoint."""
        tensors = self.learner.tensors()
        write_weights(tensors, self.folder / checkpoints.MODEL, has_checksum=True)
        self.state.metrics_offset = self.metrics.sync()
        saved = checkpoints.Checkpoint(self.state, {"model": tensors}, None, self.started_with)
        checkpoints.save_checkpoint(self.folder, saved, self.config.checkpoint.keep)
        self.saved_at = time.monotonic()
