"""Regard's side of the benchmarks: updates as its training loop makes them, texts and translations as its verbs do."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.stream import Stream
from regard.decode.beam import beam_search
from regard.decode.config import BeamConfig, SamplingConfig
from regard.decode.generate import generate_all
from regard.models.gradient_next_token import GradientNextToken
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_next_token import Translating
from regard.tasks.text_objective import TextObjective
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Launched, Learner


def text_learner(model: LanguageModel, vocab_size: int, rows: int, context: int, runtime: RuntimeConfig) -> Learner:
    """What trains a language model, on random tokens."""
    ids = np.random.default_rng(0).integers(0, vocab_size, 4 * rows * context, dtype=np.int32)
    text: Any = SimpleNamespace(train=Stream.of(ids, n_bytes=len(ids), n_words=len(ids)))
    train = TrainConfig(n_batch=rows, n_context=context)
    return Learner(
        model,
        TextObjective(model, text, train, seed=0),
        train=train,
        optimizer=OptimizerConfig(lr=1e-4),
        runtime=runtime,
    )


def updates(learner: Learner) -> Callable[[], None]:
    """One update after the other, each waited for while the next is under way, as the training loop does."""
    index = iter(range(10**9))
    pending: list[Launched] = []

    def step() -> None:
        pending.append(learner.launch(next(index), 1e-4))
        if len(pending) > 1:
            pending.pop(0).wait()

    return step


def generating(model: LanguageModel, prompts: Tensor, n_new: int) -> Callable[[], Tensor]:
    """Greedy texts; every one begins with an end mark of its own."""
    next_token = GradientNextToken(model)
    config = SamplingConfig(temperature=0.0, max_tokens=n_new)
    return lambda: torch.tensor(generate_all(next_token, prompts, config))


def translating(model: Seq2Seq, source: Tensor, mask: Tensor, beam: int, n_new: int) -> Callable[[], list[Any]]:
    """The best targets of `n_new` tokens."""
    config = BeamConfig(beam=beam, min_length=n_new, max_length=n_new)

    def search() -> list[Any]:
        stepper = Translating(model)
        log_probs, state = stepper.begin(source, mask, None, n_new)
        found = beam_search(stepper, log_probs, state, config, max_lengths=n_new, stop=0)
        assert all(len(best[0].tokens) == n_new for best in found)
        return found

    return search
