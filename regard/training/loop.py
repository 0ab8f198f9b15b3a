"""The training loop of every model with a gradient.

    while the budget lasts:  update;  now and then log, evaluate, save

Everything the next update depends on is in `TrainState` (numbers) and `Learner` (tensors), and all of it goes into a
checkpoint: a run that was killed goes on with the bits it would have had.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import RegardError
from regard.layers.any_shape import attention_of_any_shape
from regard.layers.on_device import on_device
from regard.training import checkpoint as checkpoints
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.device import pick_device, session
from regard.training.learner import DivergedError, Launched, Learner
from regard.training.memory import check_memory, estimate_memory
from regard.training.metrics import Metrics
from regard.training.objective import Objective
from regard.training.progress import Reporter, Silent, Status
from regard.training.result import TrainResult
from regard.training.schedule import learning_factor
from regard.training.state import TrainState
from regard.training.stop import Interrupt, Limits, diverged, observe_loss, observe_score
from regard.training.weights import load_weights, read_tensors, write_weights

JUDGES = {"bleu": "BLEU", "f1": "F1"}
"""What a score can be judged by beside the loss, as people write it."""


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
) -> TrainResult:
    """Train `model` in place by an objective, and write what a run is made of into `folder`.

    Writes `model.safetensors` (the weights with the best score on the validation data), `metrics.jsonl`, `tensorboard/`
    and `state/`; the config and the tokenizer are the caller's. The model ends with its best weights, on its device.

    `resume` goes on from the newest checkpoint, or from the start where there is none yet: the model must have been
    built from the same config and seed. Ctrl-C and SIGTERM finish the step, save and return with "interrupted".
    `on_step` is called after every update, before anything is saved; where it returns True, the run ends as by Ctrl-C.
    """
    reporter = reporter or Silent()
    folder.mkdir(parents=True, exist_ok=True)
    latest = checkpoints.latest_checkpoint(folder)
    if latest is not None and not resume:
        raise RegardError(f"{folder} already holds a run, saved at {latest.name}. Resume it or choose another folder.")
    device = pick_device(runtime.device)
    shapes = nullcontext() if objective.has_one_shape else attention_of_any_shape()
    with on_device(device), shapes, session(runtime, seed), Interrupt() as interrupt:
        needed = estimate_memory(model, objective, train, optimizer, runtime)
        check_memory(needed, runtime, device, objective.memory_settings)
        checkpoints.clean_run_folder(folder)
        learner = Learner(model.to(device), objective, train=train, optimizer=optimizer, runtime=runtime)
        run = _Run(learner, objective, folder, train, schedule, checkpoint, objective.highest_rate(optimizer), latest)
        reporter.start(
            f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}"
            + (f", from {latest.name}" if latest else "")
        )
        try:
            while (reason := run.end()) is None:
                run.update(is_watched=on_step is not None or interrupt.is_asked)
                reporter.show(run.status())
                if run.pending is not None:
                    continue
                is_last = run.end() is not None
                if is_last or run.state.step % checkpoint.log_every == 0:
                    run.log()
                if is_last or run.state.step % train.eval_every == 0:
                    run.evaluate()
                is_stopped = interrupt.is_asked or (on_step is not None and on_step(run.state))
                if is_stopped or run.end() is not None or run.is_save_due():
                    run.save()
                if is_stopped and run.end() is None:
                    reason = "interrupted"
                    break
        finally:
            reporter.stop()
            run.metrics.close()
        return run.result(reason)


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
        latest: Path | None,
    ) -> None:
        self.learner, self.objective, self.folder, self.latest = learner, objective, folder, latest
        self.train, self.schedule, self.config, self.highest_lr = train, schedule, config, lr
        self.limits = Limits.of(train, objective.per_epoch)
        self.flops_per_token = 3 * objective.flops_per_token  # forward once, backward costs twice that
        self.started_with = objective.identity()
        self.state = TrainState()
        self.lr = self.grad_norm = self.nats_per_token = 0.0
        self.tokens_per_second: float | None = None
        self.saved_at = time.monotonic()
        self.pending: Launched | None = None
        self.taken_in_at = 0.0
        if latest is not None:
            self._restore(latest)
        else:  # a run that died before its first checkpoint may have left weights, which are none of this one's
            (folder / checkpoints.MODEL).unlink(missing_ok=True)
        step, offset = self.state.step, self.state.metrics_offset
        self.metrics = Metrics(folder, step=step, offset=offset, has_tensorboard=config.has_tensorboard)

    def end(self) -> str | None:
        """Why the run is over, or None."""
        if self.train.patience is not None and self.state.n_since_best >= self.train.patience:
            return "patience"
        return self.limits.reached(self.state)

    def update(self, is_watched: bool) -> None:
        """Launch the next update, and take in the one before it, so that a GPU need not wait for Python.

        This one is taken in too, and nothing is pending after it, where somebody will look at the weights or the
        counters now: to log, to evaluate, to save, to end, or because it `is_watched`. A CPU is always waited for.
        """
        state = self._with_pending()
        factor = learning_factor(self.schedule, state.step, self.limits.progress(state), state.n_drops)
        self.lr = self.highest_lr * factor * self.objective.rate_factor(state.step)
        try:
            launched = self.learner.launch(state.step, self.lr)
        except DivergedError as error:
            raise self._diverged(str(error), state.step + 1) from None
        self._settle()
        self.pending = launched
        if is_watched or self._is_looked_at(self._with_pending()):
            self._settle()

    def _with_pending(self) -> TrainState:
        """The counters as they will be when the pending update is taken in."""
        if self.pending is None:
            return self.state
        tokens = self.state.tokens + self.pending.n_tokens
        return replace(self.state, step=self.state.step + 1, tokens=tokens)

    def _is_looked_at(self, state: TrainState) -> bool:
        if not self.learner.is_guarded or self.limits.reached(state) is not None:
            return True
        every = (self.config.log_every, self.train.eval_every, self.config.every_steps)
        return any(n is not None and state.step % n == 0 for n in every) or self.is_save_due()

    def _settle(self) -> None:
        """Take in the pending update, if there is one."""
        launched, self.pending = self.pending, None
        if launched is not None:
            self._take_in(launched)

    def _take_in(self, launched: Launched) -> None:
        state = self.state
        try:
            update = launched.wait(since=self.taken_in_at)
        except DivergedError as error:
            raise self._diverged(str(error), state.step + 1) from None
        self.taken_in_at = time.perf_counter()
        state.step += 1
        state.tokens += update.n_tokens
        state.flops += self.flops_per_token * update.n_tokens
        state.seconds += update.seconds
        state.window_nats += update.nats
        state.window_tokens += update.n_tokens
        state.window_seconds += update.seconds
        state.window_timed_tokens += update.n_tokens if update.seconds else 0
        self.grad_norm, self.nats_per_token = update.grad_norm, update.nats_per_token
        self.tokens_per_second = _rate(update.n_tokens, update.seconds)
        if observe_loss(state, update.nats_per_token, self.objective.n_classes):
            what = (
                f"the loss exploded to {update.nats_per_token:.3g} nats a token (lowest so far {state.lowest_nats:.3g})"
            )
            raise self._diverged(what, state.step)

    def log(self) -> None:
        """A training line of the metrics: means since the last one."""
        state = self.state
        nats_per_token = state.window_nats / state.window_tokens
        self._measured(
            "train",
            nats_per_token,
            self._bits_per_byte(nats_per_token),
            lr=self.lr,
            grad_norm=self.grad_norm,
            tokens_per_second=_rate(state.window_timed_tokens, state.window_seconds),
        )
        state.window_nats, state.window_tokens = 0.0, 0
        state.window_seconds, state.window_timed_tokens = 0.0, 0

    def evaluate(self) -> None:
        """Score the validation text; where the score is the best so far, keep the weights."""
        is_best = True
        average = self.learner.average
        with nullcontext() if average is None else average.applied():
            score = self.objective.evaluate(self.learner.model)
        if score is not None:
            if not math.isfinite(score.nats_per_token):
                raise self._diverged(f"the score on the validation text is {score.nats_per_token}", self.state.step)
            is_best = observe_score(self.state, score, self.schedule)
            if average is not None:
                average.observe(self.state.scores)
            self._measured("valid", score.nats_per_token, score.bits_per_byte, **score.more)
        if is_best:
            write_weights(self.learner.kept_weights(), self.folder / checkpoints.MODEL)

    def is_save_due(self) -> bool:
        """By steps or by time; never while the loss is far too high, so that a good checkpoint is always kept."""
        config, step = self.config, self.state.step
        if self.state.n_high:
            return False
        if config.every_steps is not None and step % config.every_steps == 0:
            return True
        return config.every_seconds is not None and time.monotonic() - self.saved_at >= config.every_seconds

    def save(self) -> None:
        if not (self.folder / checkpoints.MODEL).exists():  # stopped before the first evaluation: usable all the same
            write_weights(self.learner.kept_weights(), self.folder / checkpoints.MODEL)
        self.state.metrics_offset = self.metrics.sync()
        tensors, carried_shape = self.learner.tensors()
        saved = checkpoints.Checkpoint(self.state, tensors, carried_shape, self.started_with)
        # While the loss is too high, the older checkpoints may be the only good ones.
        keep = None if self.state.n_high else self.config.keep
        self.latest = checkpoints.save_checkpoint(self.folder, saved, keep)
        self.saved_at = time.monotonic()

    def _diverged(self, what: str, step: int) -> RegardError:
        """The error that ends a run whose numbers went wrong; what may be spoilt is removed from its folder first.

        The loss of an update judges the weights that the one before it left, so a checkpoint is known to be good one
        loss later: the last one that was not too high speaks for the weights before it, and for none after.
        """
        state = self.state
        first_suspect = state.step - state.n_high
        self.latest = checkpoints.drop_from(self.folder, first_suspect)
        if self.latest is not None:
            checkpoints.restore_best(self.folder, self.latest)
        elif state.best_step is None or state.best_step >= first_suspect:
            (self.folder / checkpoints.MODEL).unlink(missing_ok=True)
        return diverged(what, step, self.lr, self.latest)

    def _restore(self, folder: Path) -> None:
        saved = checkpoints.load_checkpoint(folder)
        for name, now in self.started_with.items():
            if (before := saved.started_with.get(name)) != now:
                raise RegardError(
                    f"Cannot resume {self.folder}: its {name} was {before} and is {now} now. Resume it with what it "
                    "was started with, or start another run."
                )
        checkpoints.restore_best(self.folder, folder)
        self.state = saved.state
        self.learner.restore(saved.tensors, saved.carried_shape)

    def status(self) -> Status:
        return Status(
            step=self.state.step,
            progress=self.limits.progress(self.state),
            seconds=self.state.seconds,
            nats_per_token=self.nats_per_token,
            bits_per_byte=self._bits_per_byte(self.nats_per_token),
            tokens_per_second=self.tokens_per_second,
            valid_bits_per_byte=self.state.best_bits_per_byte,
            best_score=self._best_score(),
        )

    def _best_score(self) -> tuple[str, float] | None:
        name, scores = JUDGES.get(self.objective.select_by), self.state.scores
        return (name, -min(scores)) if name is not None and scores else None

    def result(self, reason: str) -> TrainResult:
        """The end: the model gets its best weights back."""
        state, model = self.state, self.learner.model
        load_weights(model, read_tensors(self.folder / checkpoints.MODEL), self.folder / checkpoints.MODEL)
        best = state.best_step, state.best_nats_per_token, state.best_bits_per_byte
        return TrainResult(reason, state.step, state.tokens, state.flops, state.seconds, *best)

    def _measured(self, kind: str, nats_per_token: float, bits_per_byte: float | None, **more: Any) -> None:
        s = self.state
        scores = {"nats_per_token": nats_per_token, "bits_per_byte": bits_per_byte}
        self.metrics.write(kind, s.step, tokens=s.tokens, flops=s.flops, seconds=s.seconds, **scores, **more)

    def _bits_per_byte(self, nats_per_token: float) -> float | None:
        bytes_per_token = self.objective.bytes_per_token
        return nats_per_token / math.log(2) / bytes_per_token if bytes_per_token else None


def _rate(n_tokens: int, seconds: float) -> float | None:
    """Tokens a second, or None where no time was measured: compiling is no training time."""
    return n_tokens / seconds if seconds else None
