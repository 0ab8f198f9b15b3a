"""What a model computed on a text, token by token.

    run.trace(text)                    everything, as arrays beside the tokens
    with regard.trace(run) as record:  what the model computed inside the block, under its tap names
        run.score(text)

A fused kernel hides its weights, so a traced pass takes the plain path; the numbers are the same (tests hold both
equal). Outside the block nothing is recorded and nothing is slower.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.record import Record
from regard.models.captioner import Captioner
from regard.models.gradient_model import GradientModel
from regard.models.next_token import as_next_token
from regard.models.seq2seq import Seq2Seq
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[Any]
N_SHOWN = 20  # tokens that a notebook shows of a trace


@dataclass(frozen=True, repr=False)
class Trace:
    """Token t of `tokens` was read at row t of every tap, and cost `nats[t]` before it was read.

    `taps` holds arrays by tap name, without the batch dimension: `layers.0.attention` (N, T, T), `layers.0.cell`
    (T, H), `layers.0.hidden` (T, D), ... Row 0 is the unseen start of the text. An n-gram model has one tap,
    `matched_order`: how many tokens the longest n-gram it knew was long.
    """

    tokens: tuple[str, ...]
    nats: NDArray[np.float64]
    taps: Mapping[str, Array]

    def __repr__(self) -> str:
        taps = ", ".join(f"{name} {tap.shape}" for name, tap in self.taps.items())
        return f"<Trace of {len(self.tokens)} tokens, {self.nats.sum():.2f} nats; taps: {taps}>"

    def __getitem__(self, name: str) -> Array:
        if name not in self.taps:
            raise RegardError(f"There is no tap '{name}' in this trace; there are: {', '.join(self.taps)}.")
        return self.taps[name]

    def named(self, ending: str) -> dict[str, Array]:
        """All taps whose name ends so: `named("attention")` is every layer's weights."""
        return {n: a for n, a in self.taps.items() if n == ending or n.endswith("." + ending)}

    @property
    def attention(self) -> dict[str, Array]:
        """Every layer's attention weights, (N, T, S); empty where the model does not attend."""
        return self.named("attention")

    @property
    def cells(self) -> dict[str, Array]:
        """Every layer's cell states, (T, H); empty where the model has no cells."""
        return self.named("cell")

    def to_frame(self, tap: str | None = None) -> DataFrame:
        """A pandas DataFrame with a row for every token: its text, its nats, and each tap that has one value a token.

        With the name of a `tap`, that tap: a row for every token and a column for every unit; of attention, a row for
        every head and token and a column for every token that is looked at.
        """
        try:
            import pandas  # an optional dependency: only this method needs it
        except ImportError:
            raise RegardError("to_frame needs pandas, which is not installed: pip install pandas") from None
        tokens = list(self.tokens)
        if tap is None:
            single = {name: values for name, values in self.taps.items() if values.ndim == 1}
            return pandas.DataFrame({"token": tokens, "nats": self.nats, **single})
        values = self[tap]
        if values.ndim < 3:
            return pandas.DataFrame(values, index=tokens)
        rows = pandas.MultiIndex.from_product([range(len(values)), tokens], names=["head", "token"])
        return pandas.DataFrame(values.reshape(-1, values.shape[-1]), index=rows, columns=tokens)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first tokens with their nats, and the names and shapes of the taps."""
        tokens = [(token, f"{nats:.3f}") for token, nats in zip(self.tokens, self.nats, strict=True)][:N_SHOWN]
        n_more = len(self.tokens) - len(tokens)
        taps = [(name, " × ".join(map(str, tap.shape))) for name, tap in self.taps.items()]
        more = f"<p>… and {n_more} more</p>" if n_more else ""
        return _html_table(("token", "nats"), tokens) + more + _html_table(("tap", "shape"), taps)


def _html_table(columns: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class TraceableRun(Protocol):
    """What looking inside asks of a run of a language model."""

    @property
    def model(self) -> GradientModel | NgramModel: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def trace(self, text: str) -> Trace: ...


def trace_text(model: GradientModel | NgramModel, tokenizer: Tokenizer | ExtendedVocabulary, text: str) -> Trace:
    """Run `model` over one text, by the plain path, and keep everything."""
    ids = tokenizer.encode(text)
    if not len(ids):
        raise RegardError("The text to trace is empty; give at least one token.")
    nats = as_next_token(model, tokenizer.eos).nats(ids)
    if isinstance(model, NgramModel):
        tokens = tuple(tokenizer.token_text(int(i)) for i in ids)
        return Trace(tokens, nats, {"matched_order": model.matched_orders(ids)})
    limit = model.mixer.max_context
    if limit is not None and len(ids) + 1 > limit:
        raise RegardError(
            f"The text to trace is {len(ids)} tokens long and the model sees at most {limit - 1} at once. Shorten it."
        )
    seen = [tokenizer.eos, *ids.tolist()]
    was_training = model.training
    model.eval()
    record = Record()
    with torch.no_grad():
        model(torch.tensor([seen], device=model.embedding.device), None, record)
    model.train(was_training)
    taps = {name: record[name][0].float().cpu().numpy() for name in record}
    return Trace(tuple(tokenizer.token_text(i) for i in seen), np.append(0.0, nats), taps)


class HasModel(Protocol):
    """A run, or anything else that holds a model."""

    @property
    def model(self) -> Any: ...


@contextmanager
def trace(model: nn.Module | HasModel) -> Iterator[Record]:
    """Record what a model with gradients, or that of a run, computes inside the block: `run.score`, `model(ids)`, ...

    A later pass overwrites the taps of an earlier one: of a text that is scored in several windows, or generated token
    by token, the record holds the last. Steps that a GPU replays as a CUDA graph are not recorded. Tensors keep their
    graph: call `backward` on something computed from them inside the block, and `record["layers.0.hidden"].grad` is
    there.
    """
    network = model if isinstance(model, nn.Module) else model.model
    if not isinstance(network, nn.Module):
        raise RegardError("An n-gram model has no activations to record; use run.trace(text) for its matched orders.")
    record = Record()
    with ExitStack() as stack:
        for module, names in _recording_methods(network):
            for name in names:
                stack.enter_context(_hand_record_to(module, name, record))
        yield record
    if not list(record):
        raise RegardError(
            "Nothing was recorded: the model did not run inside the block. Call it there, such as run.score(text) or "
            "model(ids), on the run or model that was given to trace."
        )


def _recording_methods(network: nn.Module) -> list[tuple[nn.Module, tuple[str, ...]]]:
    """The methods that are called from outside and take a record."""
    if isinstance(network, Seq2Seq | Captioner):
        return [(network, ("encode", "forward")), (network.target, ("hidden", "forward"))]
    return [(network, ("hidden", "forward") if isinstance(network, GradientModel) else ("forward",))]


@contextmanager
def _hand_record_to(module: nn.Module, name: str, record: Record) -> Iterator[None]:
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
        kept = given.arguments.get("record")
        if kept is None:
            given.arguments["record"] = kept = record
        result = method(*given.args, **given.kwargs)
        if kept is not record:
            for tap in kept:
                record.keep(tap, kept[tap])
        return result

    before = vars(module).get(name)  # that of a block around this one
    setattr(module, name, record_call)  # on the instance, in front of its class's method
    try:
        yield
    finally:
        delattr(module, name)
        if before is not None:
            setattr(module, name, before)
