"""The training loop of every model with a gradient.

    while the budget lasts:  update;  now and then log, evaluate, save

Everything the next update depends on is in `TrainState` (numbers) and `Learner` (tensors), and all of it goes into a
checkpoint: a run that was killed goes on with the bits it would have had.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.errors import RegardError
from regard.kernels.device import device_guard, sdpa_backend_for_any_shape
from regard.training import checkpoint as checkpoints
from regard.training.averaging import use_average
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.device import choose_threads, pick_device, session
from regard.training.learner import DivergedError, Learner, Update
from regard.training.memory import check_memory, estimate_memory
from regard.training.metrics import Metrics, Speed, check_metrics
from regard.training.objective import Objective
from regard.training.progress import Reporter, Silent, Status
from regard.training.schedule import learning_factor
from regard.training.snapshots import drop_newer, save_snapshot
from regard.training.state import TrainResult, TrainState
from regard.training.stop import (
    Interrupt,
    Limits,
    divergence_error,
    full_memory_error,
    is_too_high,
    observe_loss,
    observe_score,
)
from regard.training.weights import load_weights, read_checked_tensors, write_weights

MEASURES = {
    "bleu": "BLEU", "f1": "F1", "accuracy": "accuracy", "macro-f1": "macro F1", "matthews": "Matthews",
    "pearson": "Pearson", "spearman": "Spearman", "exact": "exact match",
}  # fmt: skip
"""What can select the best weights beside the loss, as people write it."""


def train_by_gradient(
    model: nn.Module,
    objective: Objective,
    folder: Path,
    *,
    train: TrainConfig,
    optimizer: OptimizerConfig,
    schedule: ScheduleConfig,
    runtime: RuntimeConfig,
    checkpoint: CheckpointConfig,
    seed: int = 0,
    resume: bool = False,
    reporter: Reporter | None = None,
    on_step: Callable[[TrainState], bool] | None = None,
    begin_writing: Callable[[], None] = lambda: None,
) -> TrainResult:
    """Train `model` in place by an objective, and write what a run is made of into `folder`.

    Writes `model.safetensors` (the weights with the best score on the validation data), `metrics.jsonl`, `tensorboard/`
    and `state/`; the config and the tokenizer are the caller's. The model ends with its best weights, on its device.

    `resume` goes on from the newest checkpoint, or from the start where there is none yet: the model must have been
    built from the same config and seed. A run that had ended goes on where its limits were raised. Ctrl-C and SIGTERM
    finish the step, save and return with "interrupted". `on_step` is called after every update, before anything is
    saved; where it returns True, the run ends as by Ctrl-C. `begin_writing` is called once, before any file is changed:
    what cannot be resumed is refused before.
    """
    reporter = reporter or Silent()
    device = pick_device(runtime.device)
    folder.mkdir(parents=True, exist_ok=True)
    latest = _find_state(folder, resume, reporter)
    state = TrainState() if latest is None else checkpoints.load_state(latest)
    if runtime.n_threads is None and device.type == "cpu":
        if latest is None:
            state.n_threads = _count_threads(objective, reporter)
        runtime = runtime.replace(n_threads=state.n_threads)
    shapes = nullcontext() if objective.has_one_shape else sdpa_backend_for_any_shape()
    with device_guard(device), shapes, session(runtime, seed), Interrupt() as interrupt:
        needed = estimate_memory(model, objective, train, optimizer, runtime)
        check_memory(needed, runtime, device, objective.memory_settings)
        checkpoints.clean_run_folder(folder)
        learner = Learner(
            model.to(device), objective, train=train, optimizer=optimizer, runtime=runtime, tell=reporter.note
        )
        assert optimizer.lr is not None, "the task fills it in"
        run = _Run(learner, objective, folder, train, schedule, checkpoint, optimizer.lr, state, latest, begin_writing)
        n_parameters = sum(p.numel() for p in model.parameters())
        reporter.start(f"{n_parameters:,} parameters on {device}" + (f", from {latest.name}" if latest else ""))
        try:
            reason = _train(run, reporter, interrupt, on_step)
        except DivergedError as error:
            raise run.give_up(str(error), run.state.step + 1) from None
        except torch.OutOfMemoryError as error:
            raise full_memory_error(run.state.step + 1, run.latest, objective.memory_settings) from error
        finally:
            reporter.stop()
            run.metrics.close()
        return run.result(reason)


def _count_threads(objective: Objective, reporter: Reporter) -> int:
    """How many threads suit the size of an update; a note where that is worth telling."""
    n_flops = 3.0 * objective.flops_per_token * objective.n_rows * objective.n_target  # backward costs twice forward
    n_threads, note = choose_threads(n_flops)
    if note is not None:
        reporter.note(note)
    return n_threads


def _find_state(folder: Path, resume: bool, reporter: Reporter) -> Path | None:
    """The checkpoint to go on from, None to begin; weights that a fresh start would replace are not lost silently."""
    latest = checkpoints.latest_checkpoint(folder)
    if latest is not None and not resume:
        raise RegardError(f"{folder} already holds a run, saved at {latest.name}. Resume it or choose another folder.")
    if latest is None and (folder / checkpoints.MODEL).exists():
        if checkpoints.is_finished(folder):
            raise RegardError(
                f"'{folder}' is a finished run whose saved state is gone ({folder}/state): it cannot be resumed. Its "
                f"weights are untouched. Train a language model further with: regard train --from {folder} --out NEW; "
                "or train from the start in another folder."
            )
        reporter.note(
            f"There is no saved state in {folder}/state: training starts again at step 0. {checkpoints.MODEL} stays as "
            "it is until there are new weights to keep."
        )
    return latest


def _train(run: _Run, reporter: Reporter, interrupt: Interrupt, on_step: Callable[[TrainState], bool] | None) -> str:
    """Update, log, evaluate and save until a limit is reached or somebody stops the run; returns why it ended."""
    while (reason := run.end()) is None:
        for update in run.updates(is_watched=lambda: on_step is not None or interrupt.is_asked):
            run.count(update)
            reporter.show(run.status())
        is_last = run.end() is not None
        if is_last or run.state.step % run.config.log_every == 0:
            run.log()
        if is_last or run.state.step % run.train.eval_every == 0:
            run.evaluate()
            reporter.show(run.status())
        run.keep_snapshot()
        is_stopped = interrupt.is_asked or (on_step is not None and on_step(run.state))
        if is_stopped or run.end() is not None or run.is_save_due():
            run.save()
        if is_stopped and run.end() is None:
            return "interrupted"
    return reason


class _Run:
    """A run while it trains: its counters, and the files that it keeps up to date."""

    def __init__(
        self,
        learner: Learner,
        objective: Objective,
        folder: Path,
        train: TrainConfig,
        schedule: ScheduleConfig,
        config: CheckpointConfig,
        lr: float,
        state: TrainState,
        latest: Path | None,
        begin_writing: Callable[[], None],
    ) -> None:
        """`state` is that of the checkpoint `latest`, or a new one where there is none."""
        self.learner, self.objective, self.folder, self.state, self.latest = learner, objective, folder, state, latest
        self.train, self.schedule, self.config, self.highest_lr = train, schedule, config, lr
        self.limits = Limits.of(train, objective.per_epoch)
        # Forward once, backward costs twice that; a run that goes on is charged as it was, by whatever formula.
        self.flops_per_token = state.flops // state.tokens if state.tokens else 3 * objective.flops_per_token
        self.started_with = objective.identity()
        self.lr = self.grad_norm = self.nats_per_token = 0.0
        self.speed = Speed()
        self.saved_at = time.monotonic()
        check_metrics(folder, state.metrics_offset)
        self.has_weights = latest is not None  # what a run that died before its first checkpoint left is not its own
        if latest is not None:
            self._restore(latest, begin_writing)
        else:
            begin_writing()
        drop_newer(folder, state.step)
        if latest is None:
            self.keep_snapshot()
        offset, has_tensorboard = state.metrics_offset, config.has_tensorboard
        self.metrics = Metrics(folder, step=state.step, offset=offset, has_tensorboard=has_tensorboard)

    def _restore(self, latest: Path, begin_writing: Callable[[], None]) -> None:
        saved = checkpoints.load_checkpoint(latest)
        for name, now in self.started_with.items():
            if (before := saved.started_with.get(name)) != now:
                raise RegardError(
                    f"Cannot resume {self.folder}: its {name} was {before} and is {now} now. Resume it with what it "
                    "was started with, or start another run."
                )
        with checkpoints.explain_other_tensors(latest):
            self.learner.restore(saved.tensors, saved.carried_shape)
        begin_writing()
        checkpoints.restore_best(self.folder, latest)
        checkpoints.drop_oldest(self.folder, self._count_kept())  # which one killed after it saved did not do

    def end(self) -> str | None:
        """Why the run is over, or None."""
        if self.train.patience is not None and self.state.n_since_best >= self.train.patience:
            return "patience"
        return self.limits.find_reached(self.state)

    def updates(self, is_watched: Callable[[], bool]) -> Iterator[Update]:
        """Make updates up to one after which there is more to do, at once where the run `is_watched`."""

        def at(step: int, tokens: int) -> TrainState:
            return replace(self.state, step=step, tokens=tokens)

        def is_awaited(step: int, tokens: int) -> bool:
            every = (self.config.log_every, self.train.eval_every, self.config.every_steps)
            is_due = any(n is not None and step % n == 0 for n in every) or self._is_save_due_by_time()
            is_due = is_due or step in self.config.snapshots
            return is_due or is_watched() or self.limits.find_reached(at(step, tokens)) is not None

        return self.learner.updates(
            self.state.step, self.state.tokens, lambda step, tokens: self._rate(at(step, tokens)), is_awaited
        )

    def _rate(self, state: TrainState) -> float:
        """The learning rate of the update that follows `state`."""
        factor = learning_factor(self.schedule, state.step, self.limits.progress(state), state.n_drops)
        self.lr = self.highest_lr * factor * self.objective.rate_factor(state.step)
        return self.lr

    def count(self, update: Update) -> None:
        """Take a finished update into the counters; RegardError where the loss has exploded."""
        state = self.state
        state.step += 1
        state.tokens += update.n_tokens
        state.flops += self.flops_per_token * update.n_tokens
        state.seconds += update.seconds
        state.window_nats += update.nats
        state.window_tokens += update.n_tokens
        self.speed.count(update.n_tokens, update.seconds)
        self.grad_norm, self.nats_per_token = update.grad_norm, update.nats_per_token
        if observe_loss(state, update.nats_per_token, self.objective.n_classes):
            nats, lowest = update.nats_per_token, state.lowest_nats
            what = f"the loss exploded to {nats:.3g} nats a token (lowest so far {lowest:.3g})"
            raise self.give_up(what, state.step)

    def log(self) -> None:
        """Write a training line of the metrics: means since the last one, and the speed."""
        state = self.state
        nats_per_token = state.window_nats / state.window_tokens
        bits_per_byte, speed = self._bits_per_byte(nats_per_token), self.speed.tokens_per_second
        more = {"lr": self.lr, "grad_norm": self.grad_norm, "tokens_per_second": speed}
        self._write("train", nats_per_token, bits_per_byte, **more)
        state.window_nats, state.window_tokens = 0.0, 0

    def evaluate(self) -> None:
        """Score the validation text; where the score is the best so far, keep the weights."""
        is_best = True
        average = self.learner.average
        with use_average(average):
            score = self.objective.evaluate(self.learner.model)
        if score is not None:
            if not math.isfinite(score.nats_per_token):
                raise self.give_up(f"the score on the validation text is {score.nats_per_token}", self.state.step)
            is_best = observe_score(self.state, score, self.schedule)
            if average is not None:
                average.observe(self.state.scores)
            self._write("valid", score.nats_per_token, score.bits_per_byte, **score.more)
        if is_best:
            self._keep_weights()

    def _keep_weights(self) -> None:
        write_weights(self.learner.kept_weights(), self.folder / checkpoints.MODEL, has_checksum=True)
        self.has_weights = True

    def keep_snapshot(self) -> None:
        """Keep the weights of this step, where `checkpoint.snapshots` names it."""
        if self.state.step in self.config.snapshots:
            save_snapshot(self.folder, self.state.step, self.learner.kept_weights())

    def is_save_due(self) -> bool:
        """By steps or by time; never while the loss is far too high, so that a good checkpoint is always kept."""
        every = self.config.every_steps
        is_due = every is not None and self.state.step % every == 0
        return (is_due and not self.state.n_high) or self._is_save_due_by_time()

    def _is_save_due_by_time(self) -> bool:
        every = self.config.every_seconds
        return not self.state.n_high and every is not None and time.monotonic() - self.saved_at >= every

    def save(self) -> None:
        """Write a checkpoint."""
        if not self.has_weights:  # stopped before the first evaluation: usable all the same
            self._keep_weights()
        self.state.metrics_offset = self.metrics.sync()
        tensors, carried_shape = self.learner.tensors()
        saved = checkpoints.Checkpoint(self.state, tensors, carried_shape, self.started_with)
        self.latest = checkpoints.save_checkpoint(self.folder, saved, self._count_kept())
        self.saved_at = time.monotonic()

    def _count_kept(self) -> int | None:
        """How many checkpoints are kept; None, all, while the loss is too high: the older may be the only good ones."""
        return None if self.state.n_high else self.config.keep

    def give_up(self, what: str, step: int) -> RegardError:
        """The error that ends a run whose numbers went wrong; what may be spoilt is removed from its folder first.

        The loss of an update judges the weights that the one before it left, so a checkpoint is known to be good one
        loss later: the last one that was not too high speaks for the weights before it, and for none after. Where no
        checkpoint is left, weights stay that had a good score themselves, or that a finished run had ended with.
        """
        first_suspect = self.state.step - self.state.n_high
        self.latest = checkpoints.drop_from(self.folder, first_suspect)
        if self.latest is not None:
            checkpoints.restore_best(self.folder, self.latest)
        elif self.has_weights and not self._has_good_weights(first_suspect):
            (self.folder / checkpoints.MODEL).unlink(missing_ok=True)
        return divergence_error(what, step, self.lr, self.latest)

    def _has_good_weights(self, first_suspect: int) -> bool:
        state, nats = self.state, self.state.best_nats_per_token
        if state.best_step is None or nats is None:
            return checkpoints.is_finished(self.folder)
        return state.best_step < first_suspect or not is_too_high(state, nats, self.objective.n_classes)

    def status(self) -> Status:
        """Where the run stands, to be shown."""
        name, scores = MEASURES.get(self.objective.select_by), self.state.scores
        return Status(
            step=self.state.step,
            progress=self.limits.progress(self.state),
            seconds=self.state.seconds,
            nats_per_token=self.nats_per_token,
            bits_per_byte=self._bits_per_byte(self.nats_per_token),
            tokens_per_second=self.speed.tokens_per_second,
            valid_bits_per_byte=self.state.best_bits_per_byte,
            best_score=(name, -min(scores)) if name is not None and scores else None,
            unit=self.objective.unit,
        )

    def result(self, reason: str) -> TrainResult:
        """Give the model its best weights back, and say how the run ended."""
        state, model = self.state, self.learner.model
        load_weights(model, read_checked_tensors(self.folder / checkpoints.MODEL), self.folder / checkpoints.MODEL)
        best = state.best_step, state.best_nats_per_token, state.best_bits_per_byte
        return TrainResult(reason, state.step, state.tokens, state.flops, state.seconds, *best)

    def _write(self, kind: str, nats_per_token: float, bits_per_byte: float | None, **more: Any) -> None:
        s = self.state
        scores = {"nats_per_token": nats_per_token, "bits_per_byte": bits_per_byte}
        self.metrics.write(kind, s.step, tokens=s.tokens, flops=s.flops, seconds=s.seconds, **scores, **more)

    def _bits_per_byte(self, nats_per_token: float) -> float | None:
        bytes_per_token = self.objective.bytes_per_token
        return nats_per_token / math.log(2) / bytes_per_token if bytes_per_token else None
