"""What a model computed on a text, token by token.

    run.trace(text)                      everything, as arrays beside the tokens
    with regard.trace(model) as record:  what any forward pass inside the block computed, under its tap names
        model(ids)

A fused kernel hides its weights, so a traced pass takes the plain path; the numbers are the same (tests hold both
equal). Outside the block nothing is recorded and nothing is slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.record import Record
from regard.models.gradient_model import GradientModel
from regard.models.next_token import as_next_token
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer

Array = NDArray[Any]


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


@contextmanager
def trace(model: GradientModel | Any) -> Iterator[Record]:
    """Record every forward pass of `model` (a gradient model, or a Run that holds one) inside the block.

    A later pass overwrites the taps of an earlier one. Tensors keep their graph: call `backward` on something
    computed from them inside the block, and `record["layers.0.hidden"].grad` is there.
    """
    network = model if isinstance(model, nn.Module) else model.model
    if not isinstance(network, nn.Module):
        raise RegardError("An n-gram model has no activations to record; use run.trace(text) for its matched orders.")
    record = Record()

    def hand_over(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args[:2], {**kwargs, "record": record}

    handle = network.register_forward_pre_hook(hand_over, with_kwargs=True)
    try:
        yield record
    finally:
        handle.remove()
