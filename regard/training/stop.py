"""When a run ends: its limits, early stopping, an exploding loss, Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from regard.errors import DivergedRunError, RegardError
from regard.training.config import DEFAULT_STEPS, ScheduleConfig, TrainConfig
from regard.training.objective import Score
from regard.training.state import TrainState

# A loss explodes when, for so many steps in a row, it is more than a nat worse than guessing uniformly (ln V) and more
# than twice the lowest loss so far. Hard passages of a text and noise of small batches stay far below that.
MAX_HIGH_STEPS = 20


@dataclass(frozen=True)
class Limits:
    """The budget of a run; at least one limit is set. The first one reached ends it."""

    max_steps: int | None
    max_tokens: int | None
    max_seconds: float | None

    @classmethod
    def of(cls, config: TrainConfig, steps_per_epoch: int) -> Self:
        steps = [] if config.max_steps is None else [config.max_steps]
        if config.max_epochs is not None:
            steps.append(max(1, math.ceil(config.max_epochs * steps_per_epoch)))
        if not steps and config.max_tokens is None and config.max_seconds is None:
            steps = [DEFAULT_STEPS]
        return cls(min(steps) if steps else None, config.max_tokens, config.max_seconds)

    def progress(self, state: TrainState) -> float:
        """The share of the budget that is spent, 0 to 1: that of the limit which is nearest."""
        spent = [
            done / limit if limit else 1.0
            for done, limit in (
                (state.step, self.max_steps),
                (state.tokens, self.max_tokens),
                (state.seconds, self.max_seconds),
            )
            if limit is not None
        ]
        return min(1.0, max(spent))

    def find_reached(self, state: TrainState) -> str | None:
        """Find the limit that is reached: its name, or None."""
        if self.max_steps is not None and state.step >= self.max_steps:
            return "max_steps"
        if self.max_tokens is not None and state.tokens >= self.max_tokens:
            return "max_tokens"
        if self.max_seconds is not None and state.seconds >= self.max_seconds:
            return "max_seconds"
        return None


def observe_score(state: TrainState, score: Score, schedule: ScheduleConfig) -> bool:
    """Count an evaluation, for early stopping and for a plateau schedule; returns whether it is the best so far."""
    best = min(state.scores, default=math.inf)
    state.last_eval_step = state.step
    state.scores.append(score.criterion)
    is_best = score.criterion < best
    if is_best:
        state.best_step = state.step
        state.best_nats_per_token, state.best_bits_per_byte = score.nats_per_token, score.bits_per_byte
        state.n_since_best = state.n_since_drop = 0
        return True
    state.n_since_best += 1
    state.n_since_drop += 1
    if schedule.name == "plateau" and state.n_since_drop >= schedule.patience:
        state.n_drops, state.n_since_drop = state.n_drops + 1, 0
    return False


def observe_loss(state: TrainState, nats_per_token: float, n_classes: int) -> bool:
    """Count one update's loss; returns whether the loss has exploded."""
    if state.lowest_nats is None or nats_per_token < state.lowest_nats:
        state.lowest_nats = nats_per_token
    state.n_high = state.n_high + 1 if is_too_high(state, nats_per_token, n_classes) else 0
    return state.n_high >= MAX_HIGH_STEPS


def is_too_high(state: TrainState, nats_per_token: float, n_classes: int) -> bool:
    """Whether a loss is more than a nat worse than guessing, and more than twice the lowest so far."""
    return nats_per_token > max(math.log(n_classes) + 1, 2 * (state.lowest_nats or 0.0))


def divergence_error(what: str, step: int, lr: float, last_good: Path | None) -> DivergedRunError:
    """The error that ends a run whose numbers went wrong."""
    kept = f"The last good checkpoint is {last_good}" if last_good else "No good checkpoint had been written yet"
    return DivergedRunError(
        f"Training stopped at step {step}: {what} at learning rate {lr:.3g}. {kept}. Lower optimizer.lr, lengthen "
        "schedule.n_warmup or lower optimizer.max_grad_norm."
    )


def full_memory_error(step: int, last_saved: Path | None, settings: str) -> RegardError:
    """The error that ends a run whose update found the memory of the GPU full."""
    saved = f"The last checkpoint is {last_saved}" if last_saved else "No checkpoint had been written yet"
    return RegardError(
        f"Training stopped at step {step}: the memory of the GPU is full. {saved}. Lower {settings}, raise "
        "train.n_accumulate, set runtime.is_replayed to false (captured updates keep memory), or wait until other "
        "programs leave the GPU."
    )


class Interrupt:
    """Turns Ctrl-C and SIGTERM into a flag that the loop reads between two updates; a second one stops at once.

    Signals reach the main thread only; in any other thread this does nothing.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
