"""Models that are shapes without numbers: enough to count parameters and FLOPs, in a hundredth of a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from regard.errors import RegardError
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
MAX_TENSORS = 20_000  # the largest GPT-2 has 580
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


def outline(build: Callable[[], Model], max_tensors: int = MAX_TENSORS) -> Model:
    """What `build` makes, on the "meta" device; a model of more than `max_tensors` parameters is refused at once.

    A config from elsewhere may ask for a million layers, of which even the shapes would take minutes and gigabytes.
    """
    n_tensors, thread = 0, threading.get_ident()

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal n_tensors
        if threading.get_ident() != thread:  # torch tells of what other threads build, too
            return
        n_tensors += 1
        if n_tensors > max_tensors:
            raise RegardError(
                f"The model has more than {max_tensors:,} tensors, which is more than are allowed here, or than its "
                "weights are. Lower model.n_layers, or take the config that belongs to the weights."
            )

    counting = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"), _NeverFilled():
            return build()
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        if not isinstance(error, OverflowError | MemoryError) and "overflow" not in str(error).lower():
            raise
        raise RegardError(
            "The model has more parameters than any machine can hold. Lower model.d_model, or what else is so large."
        ) from None
    finally:
        counting.remove()


def outline_for(weights: Mapping[str, Any], build: Callable[[], Model]) -> Model:
    """What `build` makes, on the "meta" device, where it is to be given `weights`: with about as many tensors as these.

    Some models name a tensor twice, or have tensors that are not saved.
    """
    return outline(build, 4 * len(weights) + 100)


def count_non_embedding(model: nn.Module) -> int:
    """Count the parameters without embeddings, the output's matrix and bias, and learned positions.

    What is left grows with width and depth and not with the vocabulary. `model` may be an outline.
    """
    tables = {p for part in model.modules() if isinstance(part, _HOLD_TABLES) for p in part.parameters(recurse=False)}
    return sum(p.numel() for p in model.parameters() if p not in tables)
