"""A recurrent network that looks back at its own past states."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.past_attention import (
    past_average,
    past_scores,
    past_weights,
    past_windows,
    tapped_past_attention,
)
from regard.layers.scores import Score
from regard.layers.taps import Taps, scope
from regard.mixers.recurrent import Recurrent

RecurrentAndMemory = tuple[Any, Float[Tensor, "B M D"], Bool[Tensor, "B M"]]
"""The recurrent layers' states, the last M outputs, oldest first, and which of these there are yet."""


class RecurrentAttention(nn.Module):
    """h = recurrent(x)
    a_ts = softmax over s of score(h_t, h_s),  t-M ≤ s < t
    c_t = Σ_s a_ts h_s,  and zero where there is no past
    y_t = W_c [c_t; h_t]

    The query is the current state and the keys are the earlier ones (Bahdanau et al. 2015 and Luong et al. 2015, with
    the model's own past for a source; Daniluk et al. 2017). Luong's y is tanh(W_c [c_t; h_t]). Here it is linear, and
    W_c starts as h_t plus a little of c_t: the network begins as the one without attention, and the head, which with
    tied embeddings is D wide, reads values of the same kind. The tanh changed nothing (figures in docs/LOG.md).

    The last M outputs are carried on, with the states, from window to window.
    """

    carries_state = True
    has_static_step = True
    max_context: int | None = None

    def __init__(self, recurrent: Recurrent, d_model: int, score: str, max_memory: int) -> None:
        super().__init__()
        self.recurrent, self.d_model, self.max_memory = recurrent, d_model, max_memory
        self.score = Score(score, d_model)
        self.out = nn.Linear(2 * d_model, d_model, bias=False)  # W_c
        with torch.no_grad():
            self.out.weight[:, d_model:] = torch.eye(d_model)

    def forward(
        self, x: Float[Tensor, "B T D"], state: RecurrentAndMemory | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], RecurrentAndMemory]:
        is_start = state is None
        before, memory, is_there = self.start(x.shape[0], x.shape[1], x) if state is None else state
        h, after = self.recurrent(x, before, taps)
        inner = scope(taps, f"layers.{len(self.recurrent.layers)}")
        y, keys, is_there = self._look_back(h, memory, is_there, inner, self.max_memory if is_start else 0)
        T = x.shape[1]
        return y, (after, keys[:, T:], is_there[:, T:])

    def read_layers(self, x: Float[Tensor, "B T D"], taps: Taps | None = None) -> tuple[Tensor, ...]:
        _, memory, is_there = self.start(x.shape[0], x.shape[1], x)
        outputs = self.recurrent.read_layers(x, taps)
        inner = scope(taps, f"layers.{len(self.recurrent.layers)}")
        return *outputs, self._look_back(outputs[-1], memory, is_there, inner, self.max_memory)[0]

    @property
    def n_layers(self) -> int:
        return self.recurrent.n_layers + 1

    def _look_back(
        self,
        h: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B M D"],
        is_there: Bool[Tensor, "B M"],
        taps: Taps | None,
        n_before: int,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B K D"], Bool[Tensor, "B K"]]:
        """y; and all K = M + T keys with which of them there are. The first `n_before` of them are in no tap."""
        T = h.shape[1]
        keys = torch.cat([memory.to(h.dtype), h], dim=1)  # (B, M+T, D)
        is_there = functional.pad(is_there, (0, T), value=True)  # (B, M+T)
        if taps is not None:
            c = tapped_past_attention(self.score, h, keys, is_there, self.max_memory, taps, n_before)
            return taps.keep("hidden", self.out(torch.cat([c, h], dim=-1))), keys, is_there
        log_a, _ = past_weights(
            past_scores(self.score, h, keys, self.max_memory), past_windows(is_there, self.max_memory)
        )
        a = log_a.exp()  # (B, T, M)
        c = past_average(a.to(h.dtype), keys)  # (B, T, D)
        return self.out(torch.cat([c, h], dim=-1)), keys, is_there

    def step(
        self, x: Float[Tensor, "B 1 D"], state: RecurrentAndMemory
    ) -> tuple[Float[Tensor, "B 1 D"], RecurrentAndMemory]:
        return self(x, state)  # type: ignore[no-any-return]

    def start(self, B: int, capacity: int, like: Tensor) -> RecurrentAndMemory:
        memory = like.new_zeros(B, self.max_memory, self.d_model)
        return self.recurrent.start(B, capacity, like), memory, memory.new_zeros(B, self.max_memory, dtype=torch.bool)

    def flops_per_token(self, n_context: int) -> int:
        """Its memory goes on from window to window, so every token but the first of a text sees all M positions."""
        D, M = self.d_model, self.max_memory
        return self.recurrent.flops_per_token(n_context) + self.score.flops(1, 1, M) + 2 * D * M + 2 * 2 * D * D
