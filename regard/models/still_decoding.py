"""The writing of many targets as one CUDA graph a step: recorded once, then replayed for every token and many batches.

A step of a Transformer of 6 layers launches some 250 kernels of a few microseconds. Launched one by one from Python
they take 4 ms, as a graph well under one (regard/models/captured_step.py does the same for a language model). A graph
reads and writes fixed memory, so what it works on must stay where it is: regard/mixers/still.py.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.recording import recorded
from regard.layers.shared_rows import Shared
from regard.mixers import mixer as mixers
from regard.mixers.mixer import State
from regard.mixers.still import Room, StillDecoder, put
from regard.models.captured_step import MIN_STEPS, leaves
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.source import Source

MAX_SHARE = 16
"""All that is kept for one model takes this part of a card's memory at most. What needs more is not slow because of
launches."""
CPU_BYTES = 2**29  # where there is no card
ROWS_STEPS, SOURCE_MULTIPLE, POSITIONS_MULTIPLE = 4, 16, 32
"""Sizes are rounded up to quarters of a power of two and to multiples, so that many batches share a graph."""


class StillDecoding:
    """log P(next | rows reordered, one more token in each), in the same memory each time, with the state moved on."""

    def __init__(self, model: ConditionalLanguageModel, state: State, source: Source, room: Room) -> None:
        device = model.embedding.device
        self._model, self.source = ref(model), source  # what is kept for a model does not keep the model
        self.state = self.decoder.still(state, room)
        self.rows = torch.arange(room.n_rows, device=device)
        self.identity = torch.arange(room.n_rows, device=device)
        self.tokens = torch.zeros(room.n_rows, 1, dtype=torch.int64, device=device)
        self._recorded: tuple[torch.cuda.CUDAGraph, Tensor] | None = None

    @property
    def model(self) -> ConditionalLanguageModel:
        model = self._model()
        assert model is not None, "whoever takes a step has the model"
        return model

    @property
    def decoder(self) -> StillDecoder:
        decoder = self.model.decoder
        assert isinstance(decoder, StillDecoder), "`room_for` was asked"
        return decoder

    def fill(self, state: State) -> None:
        """Begin with another state, of any batch for which there is room."""
        self.decoder.fill(self.state, state)

    def step(self, tokens: Int[Tensor, " R"], rows: Int[Tensor, " R"] | None) -> Float[Tensor, "R V"]:
        """Of the first R rows, which go on from `rows` of those before. Valid until the next step."""
        put(self.tokens, tokens[:, None])
        put(self.rows, self.identity if rows is None else rows)
        if self.rows.is_cuda:
            return self._replayed()[: len(tokens)]
        return self._run()[: len(tokens)]

    def _run(self) -> Float[Tensor, "R V"]:
        self.decoder.follow(self.state, self.rows)
        h, after = self.model.hidden(self.tokens, self.source, self.state)
        log_probs = self.model.log_probs(h, self.model.vocab_size)
        for here, new in zip(leaves(self.state), leaves(after), strict=True):
            if here.data_ptr() != new.data_ptr():
                here.copy_(new)
        return log_probs

    def _replayed(self) -> Float[Tensor, "R V"]:
        if self._recorded is None:
            self._recorded = self._record()
        graph, log_probs = self._recorded
        graph.replay()
        return log_probs

    def _record(self) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """The step, recorded; the state is where it was."""
        before = [part.clone() for part in self._changing()]
        return recorded(self._run, lambda: self._restore(before))

    def _changing(self) -> list[Tensor]:
        """What a step changes, but for the positions of a cache that it fills: the first real one fills them again."""
        return [part for part in mixers.tensors_of(self.state) if part.ndim <= 2]

    def _restore(self, before: list[Tensor]) -> None:
        for here, old in zip(self._changing(), before, strict=True):
            here.copy_(old)

    @property
    def n_bytes(self) -> int:
        return n_bytes(self.state)


class StillDecodings:
    """Those that are not in use, by what they fit; the one that was used last is the last to go."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, StillDecoding] = OrderedDict()

    def take(self, key: Any) -> StillDecoding | None:
        return self._kept.pop(key, None)

    def give_back(self, key: Any, decoding: StillDecoding) -> None:
        self._kept[key] = decoding
        while sum(each.n_bytes for each in self._kept.values()) > max_bytes(decoding.rows.device):
            self._kept.popitem(last=False)


_OF_MODELS: WeakKeyDictionary[ConditionalLanguageModel, StillDecodings] = WeakKeyDictionary()


class Borrowed:
    """One in use by one writing; given back when that is over."""

    def __init__(self, model: ConditionalLanguageModel, state: State, source: Source, room: Room) -> None:
        """Found or made for targets at this state."""
        self._kept = _OF_MODELS.setdefault(model, StillDecodings())
        # A graph knows its weights by their addresses: a model that was moved or converted needs another.
        self._key = room, tuple(p.data_ptr() for p in model.parameters())
        self.decoding = self._kept.take(self._key) or StillDecoding(model, state, source, room)
        self.decoding.fill(state)

    def __del__(self) -> None:
        if hasattr(self, "decoding"):
            self._kept.give_back(self._key, self.decoding)


def room_for(
    model: ConditionalLanguageModel, state: State, source: Source, n_rows: int, n_positions: int
) -> Room | None:
    """How much memory the rest of a writing needs, rounded up; None where it had better not stay in its place."""
    if model.gate is not None or n_positions < MIN_STEPS or not isinstance(model.decoder, StillDecoder):
        return None
    n_sources, source_length = source.mask.shape
    n_each = -(-n_rows // n_sources)
    room = Room(
        n_rows=rounded(n_sources) * n_each,
        n_sources=rounded(n_sources),
        source_length=_multiple(source_length, SOURCE_MULTIPLE),
        n_positions=_multiple(n_positions, POSITIONS_MULTIPLE),
    )
    needed = n_bytes(model.decoder.still(_outline(state), room))
    return room if needed <= max_bytes(model.embedding.device) else None


def rounded(n: int) -> int:
    """Up to a power of two, or the next quarter of one.

    >>> [rounded(n) for n in (1, 3, 5, 9, 11, 33, 64, 65)]
    [1, 3, 5, 10, 12, 40, 64, 80]
    """
    step = max(1, 2 ** ((n - 1).bit_length() - 1) // ROWS_STEPS) if n > 1 else 1
    return _multiple(n, step)


def max_bytes(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).total_memory // MAX_SHARE if device.type == "cuda" else CPU_BYTES


def n_bytes(state: Any) -> int:
    return sum(part.numel() * part.element_size() for part in mixers.tensors_of(state))


def _outline(state: Any) -> Any:
    """The same state with shapes and no memory."""
    if isinstance(state, Tensor):
        return state.to("meta")
    if isinstance(state, Shared):
        return Shared(_outline(state.entries), state.n_each)
    return tuple(_outline(part) for part in state) if isinstance(state, tuple) else state


def _multiple(n: int, of: int) -> int:
    return -(-n // of) * of
