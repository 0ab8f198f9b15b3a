from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.settings import Settings
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.device import pick_device
from regard.training.objective import Score
from regard.training.state import TrainState
from regard.training.stop import MAX_HIGH_STEPS, Interrupt, Limits, divergence_error, observe_loss, observe_score


def limits(**given: float) -> Limits:
    return Limits.of(TrainConfig.from_dict(given), steps_per_epoch=40)


def test_progress_is_that_of_the_nearest_limit() -> None:
    both = limits(max_steps=100, max_tokens=1000)
    assert both.progress(TrainState(step=10, tokens=600)) == 0.6
    assert both.progress(TrainState(step=90, tokens=600)) == 0.9
    assert both.progress(TrainState(step=500)) == 1.0
    assert limits(max_seconds=8.0).progress(TrainState(step=10**6, seconds=2.0)) == 0.25


def test_the_first_limit_reached_is_named() -> None:
    several = limits(max_steps=100, max_tokens=1000, max_seconds=5.0)
    assert several.find_reached(TrainState(step=99, tokens=999, seconds=4.9)) is None
    assert several.find_reached(TrainState(step=100)) == "max_steps"
    assert several.find_reached(TrainState(tokens=1000)) == "max_tokens"
    assert several.find_reached(TrainState(seconds=5.0)) == "max_seconds"


def test_epochs_are_steps_and_without_any_limit_there_is_a_default() -> None:
    assert limits(max_epochs=2.5).max_steps == 100
    assert limits(max_epochs=2.5, max_steps=30).max_steps == 30
    assert limits().max_steps == 2000
    assert limits(max_tokens=5).max_steps is None


def test_patience_counts_evaluations_since_the_best() -> None:
    state, schedule = TrainState(), ScheduleConfig()
    for step, (nats, is_best, since) in enumerate(
        [(3.0, True, 0), (2.0, True, 0), (2.0, False, 1), (2.5, False, 2)], 1
    ):
        state.step = step
        assert observe_score(state, Score(nats, nats / 2, criterion=nats), schedule) is is_best
        assert state.n_since_best == since
    assert (state.best_step, state.best_nats_per_token, state.best_bits_per_byte) == (2, 2.0, 1.0)
    assert state.n_drops == 0


def test_a_plateau_drops_after_its_own_patience_and_counts_anew() -> None:
    state, schedule = TrainState(), ScheduleConfig(name="plateau", patience=2)
    drops = []
    for nats in (3.0, 4.0, 4.0, 4.0, 2.0, 4.0, 4.0):
        observe_score(state, Score(nats, None, criterion=nats), schedule)
        drops.append(state.n_drops)
    assert drops == [0, 0, 1, 1, 1, 1, 2]


def test_a_loss_explodes_only_when_it_stays_worse_than_guessing_and_than_twice_the_best() -> None:
    state, V = TrainState(), 100
    ceiling = math.log(V) + 1
    assert not observe_loss(state, 2.0, V)
    for _ in range(MAX_HIGH_STEPS - 1):
        assert not observe_loss(state, ceiling + 0.1, V)
    assert not observe_loss(state, ceiling - 0.1, V)  # one better step starts the count anew
    assert state.n_high == 0
    for i in range(MAX_HIGH_STEPS):
        assert observe_loss(state, ceiling + 0.1, V) is (i == MAX_HIGH_STEPS - 1)


def test_a_bad_start_is_no_explosion() -> None:
    state = TrainState()
    assert not any(observe_loss(state, 90.0 - i / 10, 100) for i in range(100))


def test_the_error_says_step_rate_and_where_the_last_good_state_is() -> None:
    text = str(divergence_error("the loss is nan", 12, 0.00123, Path("runs/x/state/step-00000010")))
    assert text.startswith(
        "Training stopped at step 12: the loss is nan at learning rate 0.00123. The last good checkpoint"
    )
    assert "runs/x/state/step-00000010" in text
    assert "No good checkpoint had been written yet" in str(divergence_error("the loss is nan", 12, 0.1, None))


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    asked: list[bool] = []

    def run() -> None:
        with Interrupt() as interrupt:
            asked.append(interrupt.is_asked)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert asked == [False]


def test_a_second_interrupt_stops_at_once() -> None:
    with Interrupt() as interrupt:
        interrupt._note(2, None)
        assert interrupt.is_asked
        with pytest.raises(KeyboardInterrupt):
            interrupt._note(2, None)


@pytest.mark.parametrize("refuse", [lambda name: RuntimeConfig(device=name), pick_device])
def test_an_unknown_device_is_refused(refuse: Callable[[str], object]) -> None:
    with pytest.raises(RegardError, match=r"device must be auto, cpu, cuda or cuda:N, not 'tpu'\.$"):
        refuse("tpu")
    with pytest.raises(RegardError, match=r"not 'gpu'\. Did you mean 'cuda'\?$"):
        refuse("gpu")


@pytest.mark.parametrize(
    ("section", "name"),
    [
        (OptimizerConfig, "lr"),
        (OptimizerConfig, "max_grad_norm"),
        (TrainConfig, "max_seconds"),
        (TrainConfig, "max_epochs"),
        (CheckpointConfig, "every_seconds"),
    ],
)
def test_a_zero_with_which_nothing_would_be_learned_is_refused(section: type[Settings], name: str) -> None:
    with pytest.raises(RegardError, match=rf"{name} must be more than 0, not 0\.0: .+\."):
        section.from_dict({name: 0})
    section.from_dict({name: 1e-9})


def test_an_average_that_never_forgets_is_refused() -> None:
    with pytest.raises(RegardError, match=r"average_decay must be between 0 and 0\.999999, not 1\.0"):
        TrainConfig(average="ema", average_decay=1.0)
