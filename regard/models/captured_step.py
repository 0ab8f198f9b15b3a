"""A model's next-token step as one CUDA graph: recorded once, then replayed for every token.

A step of GPT-2 launches some 170 kernels of a few microseconds each. Launched one by one from Python they take 5 ms;
as a graph, half a millisecond. A graph reads and writes fixed memory, so the token, the state and the log-probabilities
have a place each, and what the state counts (how many positions are filled) is a number on the device.

Recording takes as long as a hundred steps. So a step that nobody reads with any more is kept, and the next text of the
same shape is read with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from regard.layers.attention import MultiHeadAttention
from regard.layers.likeliest import likeliest
from regard.mixers import mixer as mixers
from regard.mixers.attention import AttentionStack
from regard.mixers.mixer import State
from regard.mixers.recurrent import Recurrent
from regard.models.gradient_model import GradientModel
from regard.models.language_model import LanguageModel, read_by_head

MIN_STEPS = 16  # for fewer, recording does not pay
ROWS_MULTIPLE = 8  # without it the product for 64 texts and GPT-2's 50,257 words takes 155 µs instead of 30
MAX_KEPT = 4  # steps kept for later, each with the memory of its caches


class CapturedStep:
    """log P(next | token, state), or the likeliest token alone, in the same memory each time, with the state moved on.

    The two are graphs of their own: a softmax over 50,000 words that nobody reads takes a tenth of a step's time.
    """

    def __init__(self, model: LanguageModel, state: State, B: int, room: int | None) -> None:
        """`state` is the model's after a prompt, with room for so many positions (None: it needs none).

        Its memory is this step's from now on.
        """
        device = model.embedding.device
        self.model, self.room = model, room
        self.head = functional.pad(model.output_weight, (0, 0, 0, -model.vocab_size % ROWS_MULTIPLE))
        self.tokens = torch.zeros(B, 1, dtype=torch.int64, device=device)
        self.state = with_counts_on_device(state, device)
        self._log_probs: tuple[torch.cuda.CUDAGraph, Tensor] | None = None
        self._likeliest: tuple[torch.cuda.CUDAGraph, Tensor] | None = None

    def log_probs(self, tokens: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Valid until the next step."""
        if self._log_probs is None:
            self._log_probs = self._captured(lambda h: self.model.log_probs(h, self.head))
        return self._replayed(self._log_probs, tokens)

    def likeliest(self, tokens: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """Valid until the next step."""
        if self._likeliest is None:
            self._likeliest = self._captured(lambda h: likeliest(self.model.step_logits(h, self.head)))
        return self._replayed(self._likeliest, tokens)

    def _replayed(self, recorded: tuple[torch.cuda.CUDAGraph, Tensor], tokens: Int[Tensor, " B"]) -> Tensor:
        graph, result = recorded
        self.tokens.copy_(tokens[:, None])
        graph.replay()
        return result

    def _captured(self, read: Callable[[Tensor], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """A step that ends with what `read` makes of the hidden state, recorded; the state is where it was."""
        graph = torch.cuda.CUDAGraph()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(2):  # kernels are compiled and their workspaces taken before anything is recorded
                # What attention writes here, at the next free position, the first real step writes again.
                read(read_by_head(self.model.hidden(self.tokens, self.state)[0]))
        torch.cuda.current_stream().wait_stream(aside)
        with torch.cuda.graph(graph):
            h, after = self.model.hidden(self.tokens, self.state)
            result = read(read_by_head(h))
            self.move_to(after)
        return graph, result

    def before(self, B: int, capacity: int) -> State:
        """The state before the first token, for reading a prompt: in this step's memory where that is large."""
        has_counts = any(is_count(part) for part in mixers.tensors_of(self.state))
        return with_counts(self.state, 0) if has_counts else self.model.start(B, capacity)

    def move_to(self, state: State) -> None:
        """Take over the values of a state; those that lie in this step's memory already stay."""
        for here, new in zip(leaves(self.state), leaves(state), strict=True):
            if isinstance(new, int):
                here.fill_(new)
            elif here.data_ptr() != new.data_ptr():
                here.copy_(new)

    def refresh(self) -> None:
        """Read the output weights again: the model may have learned since. Its other weights are read in place."""
        self.head[: self.model.vocab_size].copy_(self.model.output_weight)

    def without_graph(self, n: int) -> State:
        """The state as other code knows it, after n tokens."""
        return with_counts(self.state, n)


class CapturedSteps:
    """Steps that are not in use, by what they fit."""

    def __init__(self) -> None:
        self._kept: dict[Any, list[CapturedStep]] = {}

    def key(self, model: LanguageModel, B: int, capacity: int) -> Any:
        """A graph knows its weights by their addresses: a model that was moved or converted needs another."""
        return B, capacity, tuple(p.data_ptr() for p in model.parameters())

    def take(self, key: Any) -> CapturedStep | None:
        kept = self._kept.get(key)
        return kept.pop() if kept else None

    def give_back(self, key: Any, step: CapturedStep) -> None:
        if sum(len(steps) for steps in self._kept.values()) >= MAX_KEPT:
            self._kept.clear()
        self._kept.setdefault(key, []).append(step)


class Borrowed:
    """A step in use by one reading; given back when that reading is over."""

    def __init__(self, step: CapturedStep, steps: CapturedSteps, key: Any) -> None:
        self.step, self._steps, self._key = step, steps, key

    def __del__(self) -> None:
        self._steps.give_back(self._key, self.step)


def can_be_captured(model: GradientModel) -> bool:
    """Whether a step is a graph: on a GPU, and its state holds nothing that Python must look at."""
    if not isinstance(model, LanguageModel) or model.embedding.device.type != "cuda":
        return False
    mixer = model.mixer
    if isinstance(mixer, AttentionStack):
        return all(isinstance(block.attention, MultiHeadAttention) for block in mixer.layers)
    return isinstance(mixer, Recurrent)


def is_count(part: Tensor) -> bool:
    return part.dtype == torch.int64 and part.shape == (1,)


def leaves(state: Any) -> list[Any]:
    """All tensors and whole numbers of a state, in order."""
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]


def with_counts_on_device(state: Any, device: torch.device) -> Any:
    """The same state, every whole number a tensor (1,); equal numbers are one tensor, since they count one thing."""
    counts: dict[int, Tensor] = {}

    def moved(part: Any) -> Any:
        if isinstance(part, int):
            return counts.setdefault(part, torch.tensor([part], device=device))
        return tuple(moved(p) for p in part) if isinstance(part, tuple) else part

    return moved(state)


def with_counts(state: Any, n: int) -> Any:
    """The inverse: every count is n."""
    if isinstance(state, Tensor):
        return n if is_count(state) else state
    return tuple(with_counts(part, n) for part in state) if isinstance(state, tuple) else state
