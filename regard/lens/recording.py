"""Recording what a model computes inside a block, whoever calls it, and replacing values in it.

    with regard.trace(run) as record:  # what the model computed inside the block, under its tap names
        run.score(text)
    with regard.trace(run, replace={"layers.0.attention": uniform}):
        run.score(text)  # as if layer 0 looked everywhere alike

Outside the block nothing is recorded and nothing is slower.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Protocol

import torch
from torch import nn

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.taps import RECORDED, Replacement, Taps
from regard.models.bert import Bert
from regard.models.captioner import Captioner
from regard.models.elmo import Elmo
from regard.models.gradient_model import GradientModel
from regard.models.reader import Reader
from regard.models.seq2seq import Seq2Seq


class HasModel(Protocol):
    """A run, or anything else that holds a model."""

    @property
    def model(self) -> Any: ...


@contextmanager
def trace(model: nn.Module | HasModel, replace: Mapping[str, Replacement] | None = None) -> Iterator[Taps]:
    """Record what a model with gradients, or that of a run, computes inside the block: `run.score`, `model(ids)`, ...

    A later pass overwrites the taps of an earlier one: of a text that is scored in several windows, or generated token
    by token, the record holds the last. Nothing is replayed by a GPU or computed by another engine in the block.
    Tensors keep their graph: call `backward` inside the block on something computed from them, and
    `record.gradient("layers.0.hidden")` is there. With `replace`, the model goes on with other values than it computed,
    by tap name, as Taps say.
    """
    network = model if isinstance(model, nn.Module) else model.model
    if isinstance(network, NgramModel):
        raise RegardError("An n-gram model has no activations to record; use run.trace(text) for its matched orders.")
    if not isinstance(network, nn.Module):
        raise RegardError("Word vectors are looked up, and nothing is computed that could be recorded.")
    methods = _recording_methods(network)
    record = Taps(replace)
    with ExitStack() as stack:
        for module, names in methods:
            stack.enter_context(_mark_recorded(module))
            for name in names:
                stack.enter_context(_hand_record_to(module, name, record))
        yield record
    if not list(record):
        raise RegardError(
            "Nothing was recorded: the model did not run inside the block. Call it there, such as run.score(text) or "
            "model(ids), on the run or model that was given to trace."
        )
    record.check_replaced()


def _recording_methods(network: nn.Module) -> list[tuple[nn.Module, tuple[str, ...]]]:
    """The methods that are called from outside and take taps."""
    if isinstance(network, Seq2Seq | Captioner):
        return [(network, ("encode", "forward")), (network.target, ("hidden", "log_probs_of_all", "forward"))]
    if isinstance(network, Reader):
        encoder: Any = network.encoder
        return [(network, ("states", "forward")), (encoder, ("encode",))]
    if isinstance(network, GradientModel):
        return [(network, ("hidden", "encode", "forward"))]
    if isinstance(network, Elmo):
        return [(network, ("hidden", "encode"))]
    if isinstance(network, Bert):
        return [(network, ("encode",))]
    if "taps" in inspect.signature(network.forward).parameters:
        return [(network, ("forward",))]
    raise RegardError(
        f"A {type(network).__name__} cannot be recorded: its forward takes no `taps`. Give a run, or a model of "
        "`regard models`."
    )


@contextmanager
def _mark_recorded(module: nn.Module) -> Iterator[None]:
    """Keep replays and other engines from computing in place of the module; a block around this one may, too."""
    was_recorded = module in RECORDED
    RECORDED.add(module)
    try:
        yield
    finally:
        if not was_recorded:
            RECORDED.discard(module)


@contextmanager
def _hand_record_to(module: nn.Module, name: str, record: Taps) -> Iterator[None]:
    """Let the method called `name` keep what it computes in `record`, also where its caller brings a record of its own.

    A graph that is being captured is left alone: it would compute by the plain path for ever after.
    """
    method = getattr(module, name)
    signature = inspect.signature(method)

    @wraps(method)  # it keeps its signature, for a block inside this one
    def record_call(*args: Any, **kwargs: Any) -> Any:
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return method(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        own = given.arguments.get("taps")
        if own is None or own.belongs_to(record):
            given.arguments["taps"] = record if own is None else own
            return method(*given.args, **given.kwargs)
        given.arguments["taps"] = both = own.add_replacements(record)
        result = method(*given.args, **given.kwargs)
        own.take(both)
        record.take(both)
        return result

    before = vars(module).get(name)  # that of a block around this one
    setattr(module, name, record_call)  # on the instance, in front of its class's method
    try:
        yield
    finally:
        delattr(module, name)
        if before is not None:
            setattr(module, name, before)
