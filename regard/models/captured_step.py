"""A model's next-token step as one CUDA graph: recorded once, then replayed for every token.

A step of GPT-2 launches some 170 kernels of a few microseconds each. Launched one by one from Python they take 5 ms;
as a graph, half a millisecond. A graph reads and writes fixed memory, so the token, the state and the log-probabilities
have a place each, and what the state counts (how many positions are filled) is a number on the device.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.attention import MultiHeadAttention
from regard.mixers import mixer as mixers
from regard.mixers.attention import AttentionStack
from regard.mixers.mixer import State
from regard.mixers.recurrent import Recurrent
from regard.models.gradient_model import GradientModel
from regard.models.language_model import LanguageModel

MIN_STEPS = 16  # recording takes about as long as so many steps without it


def can_be_captured(model: GradientModel) -> bool:
    """Whether a step is a graph: on a GPU, and its state holds nothing that Python must look at."""
    if not isinstance(model, LanguageModel) or model.embedding.device.type != "cuda":
        return False
    mixer = model.mixer
    if isinstance(mixer, AttentionStack):
        return all(isinstance(block.attention, MultiHeadAttention) for block in mixer.layers)
    return isinstance(mixer, Recurrent)


class CapturedStep:
    """log P(next | token, state) -> the same memory each time, with the state moved on."""

    def __init__(self, model: LanguageModel, head: Float[Tensor, "V D"], state: State, B: int) -> None:
        """`state` must be a whole model's state after a prompt; its memory is this step's from now on."""
        device = model.embedding.device
        self.tokens = torch.zeros(B, 1, dtype=torch.int64, device=device)
        self.state = with_counts_on_device(state, device)
        self._graph = torch.cuda.CUDAGraph()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(2):  # kernels are compiled and their workspaces taken before anything is recorded
                # What attention writes here, at the next free position, the first real step writes again.
                self._compute(model, head)
        torch.cuda.current_stream().wait_stream(aside)
        with torch.cuda.graph(self._graph):
            self.log_probs, after = self._compute(model, head)
            self.likeliest = self.log_probs.argmax(dim=-1)
            for here, new in zip(mixers.tensors_of(self.state), mixers.tensors_of(after), strict=True):
                if here.data_ptr() != new.data_ptr():
                    here.copy_(new)

    def _compute(self, model: LanguageModel, head: Tensor) -> tuple[Tensor, State]:
        h, after = model.hidden(self.tokens, self.state)
        return model.log_probs(h, head), after

    def __call__(self, tokens: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Valid until the next call."""
        self.tokens.copy_(tokens[:, None])
        self._graph.replay()
        return self.log_probs

    def from_start(self) -> State:
        """The state before the first token, in this step's memory; then `go_on_from` where reading has come to."""
        return with_counts(self.state, 0)

    def go_on_from(self, n: int) -> None:
        for part in mixers.tensors_of(self.state):
            if is_count(part):
                part.fill_(n)

    def without_graph(self, n: int) -> State:
        """The state as other code knows it, after n tokens."""
        return with_counts(self.state, n)


def is_count(part: Tensor) -> bool:
    return part.dtype == torch.int64 and part.shape == (1,)


def with_counts(state: Any, n: int) -> Any:
    """The inverse of `with_counts_on_device`: every count is n."""
    if isinstance(state, Tensor):
        return n if is_count(state) else state
    return tuple(with_counts(part, n) for part in state) if isinstance(state, tuple) else state


def with_counts_on_device(state: Any, device: torch.device) -> Any:
    """The same state, every whole number a tensor (1,); equal numbers are one tensor, since they count one thing."""
    counts: dict[int, Tensor] = {}

    def moved(part: Any) -> Any:
        if isinstance(part, int):
            return counts.setdefault(part, torch.tensor([part], device=device))
        return tuple(moved(p) for p in part) if isinstance(part, tuple) else part

    return moved(state)
