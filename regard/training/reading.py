"""How a model reads the training text: in which order, and how many tokens at a time."""

from __future__ import annotations

from regard.data.batches import Batches
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.models.gradient_model import GradientModel
from regard.training.config import DEFAULT_CONTEXT, TrainConfig


def batches_for(model: GradientModel, stream: Stream, train: TrainConfig, seed: int) -> Batches:
    """The batches that `model` is trained on: update i reads batch i."""
    n_context, order = context_of(model, train), order_of(model, train)
    if train.varies_context and model.mixer.max_context is not None:
        raise RegardError(
            f"train.varies_context reads windows longer than n_context now and then, but the model sees at most "
            f"{model.mixer.max_context} tokens. Set it to false, or train a model without such a limit."
        )
    return Batches(
        stream,
        n_batch=train.n_batch,
        n_context=n_context,
        seed=seed,
        order=order,
        varies_context=train.varies_context,
    )


def order_of(model: GradientModel, train: TrainConfig) -> str:
    """`train.order` with auto resolved: a model that carries its state reads the text in order."""
    if train.order != "auto":
        return train.order
    return "stream" if model.mixer.carries_state else "shuffle"


def context_of(model: GradientModel, train: TrainConfig) -> int:
    """`train.n_context` with null resolved, checked against what the model can see."""
    limit = model.mixer.max_context
    if train.n_context is None:
        return limit or DEFAULT_CONTEXT
    if limit is not None and train.n_context > limit:
        raise RegardError(
            f"train.n_context is {train.n_context}, but the model sees at most {limit} tokens. Lower it, or raise "
            f"model.max_context to {train.n_context}."
        )
    return train.n_context
