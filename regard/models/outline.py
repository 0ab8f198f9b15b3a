"""Models that are shapes without numbers: enough to count parameters and FLOPs, in a hundredth of a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.layers.patches import GridPositions
from regard.layers.positions import LearnedPositions
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.encoder_from_scratch import TextEncoder
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import Seq2Seq
from regard.models.table import build_model
from regard.settings import Settings

Model = TypeVar("Model")
_HOLD_TABLES = (LanguageModel, TextEncoder, ConditionalLanguageModel, Seq2Seq, LearnedPositions, GridPositions)
"""All that these hold themselves is a row for each token or position; the rest is in their parts."""
_FILLING = ("normal_", "uniform_", "zero_", "fill_")


class _NeverFilled(TorchFunctionMode):
    """Filling a tensor does nothing.

    On the "meta" device there is nothing to fill, but torch draws the random numbers' shapes by a slow path that
    imports its compiler: 0.12 s a model and 6 s once, against 0.01 s.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        # Slots and method wrappers come through here too, and have neither name nor module.
        is_filling = getattr(func, "__module__", "") == "torch.nn.init" or getattr(func, "__name__", "") in _FILLING
        if is_filling:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def outline_model(name: str, config: Settings, *sizes: int | None) -> Any:
    """The model called `name`, on the "meta" device; `sizes` are those of `build_model`."""
    return outline(lambda: build_model(name, config, *sizes))


def outline(build: Callable[[], Model]) -> Model:
    """What `build` makes, on the "meta" device."""
    with torch.device("meta"), _NeverFilled():
        return build()


def count_non_embedding(model: nn.Module) -> int:
    """Count the parameters without embeddings, the output's matrix and bias, and learned positions.

    What is left grows with width and depth and not with the vocabulary. `model` may be an outline.
    """
    tables = {p for part in model.modules() if isinstance(part, _HOLD_TABLES) for p in part.parameters(recurse=False)}
    return sum(p.numel() for p in model.parameters() if p not in tables)
