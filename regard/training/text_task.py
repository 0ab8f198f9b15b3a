"""A language model on a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.models.gradient_model import GradientModel
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.evaluation import evaluate_slice
from regard.training.lesson import Lesson
from regard.training.memory import MemoryEstimate, estimate
from regard.training.optimizer import highest_rate
from regard.training.reading import batches_for
from regard.training.task import Score
from regard.training.text_lesson import TextLesson

if TYPE_CHECKING:
    from regard.data.encode import Prepared


class TextTask:
    """Predict the next token of `prepared.train`; judged by the nats a token of `prepared.valid`."""

    select_by = "loss"
    sizes = "train.n_batch or train.n_context"

    def __init__(self, model: GradientModel, prepared: Prepared, train: TrainConfig, seed: int) -> None:
        self.prepared, self.train, self.seed = prepared, train, seed
        self.batches = batches_for(model, prepared.train, train, seed)
        self.lesson: Lesson = TextLesson(self.batches)
        self.fingerprint = prepared.fingerprint
        self.flops_per_token = model.flops_per_token(self.batches.n_context)
        self.bytes_per_token: float | None = prepared.train.bytes_per_token
        self.has_one_shape = True
        self.carries_state = model.mixer.carries_state

    def identity(self) -> dict[str, Any]:
        batches, train = self.batches, self.train
        return {
            "data": self.fingerprint,
            "seed": self.seed,
            "n_batch": batches.n_batch,
            "n_context": batches.n_context,
            "n_accumulate": train.n_accumulate,
            "order": batches.order + (" of varying length" if train.varies_context else ""),
            "average": train.average,
        }

    def highest_rate(self, optimizer: OptimizerConfig) -> float:
        return highest_rate(optimizer, self.carries_state)

    def memory(self, model: GradientModel, optimizer: OptimizerConfig, runtime: RuntimeConfig) -> MemoryEstimate:
        return estimate(model, self.train, optimizer, runtime)

    def evaluate(self, model: GradientModel) -> Score | None:
        valid = self.prepared.valid
        if not len(valid):
            return None
        found = evaluate_slice(model, valid, self.train.max_eval_tokens, self.prepared.tokenizer.eos)
        return Score(found.nats_per_token, found.bits_per_byte, criterion=found.nats_per_token)
