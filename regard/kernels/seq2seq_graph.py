"""The writing of many targets as one CUDA graph a step: captured once, then replayed for every token and many batches.

A step of a Transformer of 6 layers launches some 250 kernels of a few microseconds. Launched one by one from Python
they take 4 ms, as a graph well under one. What it works on stays where it is: `StaticState`.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary, ref

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.kernels.cuda_graph import MIN_STEPS, Borrowed, CapturedGraph, Pool
from regard.kernels.state import map_state, n_bytes
from regard.kernels.static_state import Room, StaticState, changing, move_to, write_corner

MAX_SHARE = 16
"""All that is kept for one model takes this part of a card's memory at most. What needs more is not slow because of
launches."""
CPU_BYTES = 2**29  # where there is no card
ROWS_STEPS, SOURCE_MULTIPLE, POSITIONS_MULTIPLE = 4, 16, 32
"""Sizes are rounded up to quarters of a power of two and to multiples, so that many batches share a graph."""


if TYPE_CHECKING:

    class TargetModel(Protocol):
        """What is asked of a model that writes targets."""

        vocab_size: int
        embedding: nn.Parameter
        gate: nn.Linear | None

        def parameters(self) -> Iterator[nn.Parameter]: ...

        def hidden(self, inputs: Int[Tensor, "R 1"], source: Any, state: Any) -> tuple[Any, Any]: ...

        def log_probs(self, h: Any, n_words: int | None) -> Float[Tensor, "R V"]: ...

else:
    TargetModel = nn.Module  # Python 3.12 does not see the parameters and parts of a module when it checks a protocol.


class Seq2SeqGraph:
    """log P(next | rows reordered, one more token in each), in the same memory each time, with the state moved on."""

    def __init__(self, model: TargetModel, state: Any, source: Any, room: Room) -> None:
        device = model.embedding.device
        self._model, self.source = ref(model), source  # what is kept for a model does not keep the model
        self.static = StaticState(state, room)
        self.rows = torch.arange(room.n_rows, device=device)
        self.identity = torch.arange(room.n_rows, device=device)
        self.tokens = torch.zeros(room.n_rows, 1, dtype=torch.int64, device=device)
        self._graph: CapturedGraph | None = None

    @property
    def model(self) -> TargetModel:
        model = self._model()
        assert model is not None, "whoever takes a step has the model"
        return model

    def fill(self, state: Any) -> None:
        """Begin with another state, of any batch for which there is room."""
        self.static.fill(state)

    def step(self, tokens: Int[Tensor, " R"], rows: Int[Tensor, " R"] | None) -> Float[Tensor, "R V"]:
        """Let the first R rows go on from `rows` of those before, each by a token. Valid until the next step."""
        write_corner(self.tokens, tokens[:, None])
        write_corner(self.rows, self.identity if rows is None else rows)
        if not self.rows.is_cuda:
            return self._run()[: len(tokens)]
        if self._graph is None:
            before = [part.clone() for part in changing(self.static.state)]
            self._graph = CapturedGraph(self._run, lambda: self._restore(before))
        return self._graph.replay()[: len(tokens)]

    def _run(self) -> Float[Tensor, "R V"]:
        self.static.follow(self.rows)
        h, after = self.model.hidden(self.tokens, self.source, self.static.state)
        log_probs = self.model.log_probs(h, self.model.vocab_size)
        move_to(self.static.state, after)
        return log_probs

    def _restore(self, before: list[Tensor]) -> None:
        for here, old in zip(changing(self.static.state), before, strict=True):
            here.copy_(old)


_POOLS: WeakKeyDictionary[TargetModel, Pool[Seq2SeqGraph]] = WeakKeyDictionary()
_POOLS_LOCK = Lock()


def pool_of(model: TargetModel) -> Pool[Seq2SeqGraph]:
    """The graphs of a model that are not in use."""
    device = model.embedding.device
    with _POOLS_LOCK:
        if model not in _POOLS:
            _POOLS[model] = Pool(lambda: max_bytes(device), lambda graph: n_bytes(graph.static.state))
        return _POOLS[model]


def borrow_graph(model: TargetModel, state: Any, source: Any, room: Room) -> Borrowed[Seq2SeqGraph]:
    """Find or make a graph for targets at this state, and fill it with them."""
    # A graph knows its weights by their addresses: a model that was moved or converted needs another.
    key = room, tuple(p.data_ptr() for p in model.parameters())
    borrowed = pool_of(model).borrow(key, lambda: Seq2SeqGraph(model, state, source, room))
    borrowed.thing.fill(state)
    return borrowed


def room_for(
    model: TargetModel, state: Any, source_mask: Bool[Tensor, "B S"], n_rows: int, n_positions: int
) -> Room | None:
    """How much memory the rest of a writing needs, rounded up; None where it had better not stay in its place."""
    if model.gate is not None or n_positions < MIN_STEPS:
        return None
    n_sources, source_length = source_mask.shape
    n_each = -(-n_rows // n_sources)
    room = Room(
        n_rows=round_up(n_sources) * n_each,
        n_sources=round_up(n_sources),
        source_length=_multiple(source_length, SOURCE_MULTIPLE),
        n_positions=_multiple(n_positions, POSITIONS_MULTIPLE),
    )
    outline = map_state(lambda leaf: leaf.to("meta") if isinstance(leaf, Tensor) else leaf, state)
    return room if n_bytes(StaticState(outline, room).state) <= max_bytes(model.embedding.device) else None


def round_up(n: int) -> int:
    """Round up to a power of two, or the next quarter of one.

    >>> [round_up(n) for n in (1, 3, 5, 9, 11, 33, 64, 65)]
    [1, 3, 5, 10, 12, 40, 64, 80]
    """
    step = max(1, 2 ** ((n - 1).bit_length() - 1) // ROWS_STEPS) if n > 1 else 1
    return _multiple(n, step)


def max_bytes(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).total_memory // MAX_SHARE if device.type == "cuda" else CPU_BYTES


def _multiple(n: int, of: int) -> int:
    return -(-n // of) * of
