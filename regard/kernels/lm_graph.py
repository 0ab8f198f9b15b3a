"""A language model's next-token step as one CUDA graph: captured once, then replayed for every token.

A step of GPT-2 launches some 170 kernels of a few microseconds each. Launched one by one from Python they take 5 ms;
as a graph, half a millisecond. The token, the state and the log-probabilities have a place in memory each, and what the
state counts (how many positions are filled) is a number on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.argmax import argmax
from regard.kernels.cuda_graph import CapturedGraph
from regard.kernels.state import tensors_of
from regard.kernels.static_state import changing, count_on_device, count_on_host, is_count, move_to

ROWS_MULTIPLE = 8  # without it the product for 64 texts and GPT-2's 50,257 words takes 155 µs instead of 30


if TYPE_CHECKING:

    class StepModel(Protocol):
        """What is asked of a language model."""

        @property
        def embedding(self) -> Float[Tensor, "V D"]: ...

        @property
        def output_weight(self) -> Float[Tensor, "V D"]: ...

        def parameters(self) -> Iterator[nn.Parameter]: ...

        def start(self, B: int, capacity: int) -> Any: ...

        def step(self, ids: Int[Tensor, "B 1"], state: Any) -> tuple[Any, Any]: ...

        def step_logits(self, h: Any, weight: Float[Tensor, "R D"]) -> Float[Tensor, "B V"]: ...

        def step_log_probs(self, h: Any, weight: Float[Tensor, "R D"]) -> Float[Tensor, "B V"]: ...

else:
    StepModel = nn.Module  # Python 3.12 does not see the parameters and parts of a module when it checks a protocol.


class LMGraph:
    """log P(next | token, state), or the most probable token alone, in the same memory each time; moves the state on.

    The two are graphs of their own: a softmax over 50,000 words that nobody reads takes a tenth of a step's time.
    """

    def __init__(self, model: StepModel, B: int, capacity: int, is_limited: bool) -> None:
        """Make room for `capacity` positions of B texts; `is_limited`: there may be no more of them."""
        device = model.embedding.device
        self.model, self.room = model, capacity if is_limited else None
        self.head = functional.pad(model.output_weight, (0, 0, 0, -len(model.output_weight) % ROWS_MULTIPLE))
        self.tokens = torch.zeros(B, 1, dtype=torch.int64, device=device)
        self.state = count_on_device(model.start(B, capacity), device)
        self._log_probs: CapturedGraph | None = None
        self._argmax: CapturedGraph | None = None

    @torch.inference_mode()
    def log_probs(self, tokens: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Read a token of each text; the log-probabilities of the next are valid until the next step."""
        if self._log_probs is None:
            self._log_probs = self._capture(lambda h: self.model.step_log_probs(h, self.head))
        self.tokens.copy_(tokens[:, None])
        return self._log_probs.replay()

    @torch.inference_mode()
    def argmax(self, tokens: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """Read a token of each text; the most probable next ones are valid until the next step."""
        if self._argmax is None:
            self._argmax = self._capture(lambda h: argmax(self.model.step_logits(h, self.head)))
        self.tokens.copy_(tokens[:, None])
        return self._argmax.replay()

    def _capture(self, read: Callable[[Any], Tensor]) -> CapturedGraph:
        """Capture a step that ends with what `read` makes of the hidden state; the state stays where it was."""
        before = [part.clone() for part in changing(self.state)]

        def run() -> Tensor:
            h, after = self.model.step(self.tokens, self.state)
            result = read(h)
            move_to(self.state, after)
            return result

        def restore() -> None:
            for here, old in zip(changing(self.state), before, strict=True):
                here.copy_(old)

        return CapturedGraph(run, restore)

    def before(self, B: int, capacity: int) -> Any:
        """Return the state before the first token, for reading a prompt: in this graph's memory where it is large."""
        has_counts = any(is_count(part) for part in tensors_of(self.state))
        return self.without_graph(0) if has_counts else self.model.start(B, capacity)

    def begin(self, state: Any) -> None:
        """Go on from the state after a prompt. The output weights are read again: the model may have learned since."""
        move_to(self.state, state)
        weight = self.model.output_weight
        self.head[: len(weight)].copy_(weight)

    def without_graph(self, n: int) -> Any:
        """Return the state as other code knows it, after n tokens."""
        return count_on_host(self.state, n)


def fit_key(model: StepModel, B: int, capacity: int) -> object:
    """What a graph fits. It knows its weights by their addresses: a model that was moved or converted needs another."""
    return B, capacity, tuple(p.data_ptr() for p in model.parameters())
