"""Recording what a model computes inside a block, whoever calls it, and replacing values in it.

    with regard.trace(run) as record:  # what the model computed inside the block, under its tap names
        run.score(text)
    with regard.trace(run, replace={"layers.0.attention": uniform}):
        run.score(text)  # as if layer 0 looked everywhere alike

Outside the block nothing is recorded and nothing is slower.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock, get_ident
from typing import Any, Protocol

import torch
from torch import nn

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.taps import BLOCKS, Block, Replacement, Taps
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

    What other threads compute by the same model meanwhile is neither recorded nor replaced.
    """
    network = model if isinstance(model, nn.Module) else model.model
    if isinstance(network, NgramModel):
        raise RegardError("An n-gram model has no activations to record; use run.trace(text) for its matched orders.")
    if not isinstance(network, nn.Module):
        raise RegardError("Word vectors are looked up, and nothing is computed that could be recorded.")
    record = Taps(replace)
    block = Block(record, _recording_methods(network), get_ident())
    with ExitStack() as stack:
        for module, names in block.methods:
            for name in names:
                stack.enter_context(_record_method(module, name))
        stack.enter_context(_enter_block(block))
        yield record
    if not list(record):
        raise RegardError(
            "Nothing was recorded: the model did not run inside the block. Call it there, such as run.score(text) or "
            "model(ids), on the run or model that was given to trace."
        )
    record.check_replaced()


def _recording_methods(network: nn.Module) -> tuple[tuple[nn.Module, tuple[str, ...]], ...]:
    """The methods that are called from outside and take taps."""
    if isinstance(network, Seq2Seq | Captioner):
        return (network, ("encode", "forward")), (network.target, ("hidden", "log_probs_of_all", "forward"))
    if isinstance(network, Reader):
        encoder: Any = network.encoder
        return (network, ("states", "forward")), (encoder, ("encode",))
    if isinstance(network, GradientModel):
        return ((network, ("hidden", "encode", "forward")),)
    if isinstance(network, Elmo):
        return ((network, ("hidden", "encode")),)
    if isinstance(network, Bert):
        return ((network, ("encode",)),)
    if "taps" in inspect.signature(network.forward).parameters:
        return ((network, ("forward",)),)
    raise RegardError(
        f"A {type(network).__name__} cannot be recorded: its forward takes no `taps`. Give a run, or a model of "
        "`regard models`."
    )


class RecordingMethod:
    """A method of a module, in front of that of its class while blocks of any thread record it.

    It keeps what it computes in the records of the thread that calls it, also where the caller brings a record of its
    own; for a thread that records nothing it is the method itself. A graph that is being captured is left alone: it
    would compute by the plain path for ever after.
    """

    def __init__(self, module: nn.Module, name: str) -> None:
        self.module, self.name, self.method = module, name, getattr(module, name)
        self.before = vars(module).get(name)
        self.__signature__ = inspect.signature(self.method)
        self.n_blocks = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        records = [block.record for block in BLOCKS.get() if block.records(self.module, self.name)]
        if not records or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
            return self.method(*args, **kwargs)
        return self._record(self.__signature__.bind(*args, **kwargs), records)

    def _record(self, given: inspect.BoundArguments, records: Sequence[Taps]) -> Any:
        """Call the method with the last record, which hides nothing from those before it."""
        if not records:
            return self.method(*given.args, **given.kwargs)
        *outer, record = records
        own = given.arguments.get("taps")
        if own is None or own.belongs_to(record):
            given.arguments["taps"] = record if own is None else own
            return self._record(given, outer)
        given.arguments["taps"] = both = own.add_replacements(record)
        result = self._record(given, outer)
        own.take(both)
        record.take(both)
        return result


_COUNTING = Lock()
"""Held while a block begins or ends to record a method: blocks of several threads overlap as they like."""


@contextmanager
def _record_method(module: nn.Module, name: str) -> Iterator[None]:
    """Have a `RecordingMethod` in place of a method until the last block that records it ends."""
    with _COUNTING:
        found = vars(module).get(name)
        method = found if isinstance(found, RecordingMethod) else RecordingMethod(module, name)
        method.n_blocks += 1
        setattr(module, name, method)
    try:
        yield
    finally:
        with _COUNTING:
            method.n_blocks -= 1
            if not method.n_blocks:
                delattr(module, name)
                if method.before is not None:
                    setattr(module, name, method.before)


@contextmanager
def _enter_block(block: Block) -> Iterator[None]:
    """Let this thread record."""
    BLOCKS.set((*BLOCKS.get(), block))
    try:
        yield
    finally:
        BLOCKS.set(tuple(each for each in BLOCKS.get() if each is not block))
