"""Where to copy from, and how much: attention to past states, and the weight of the vocabulary beside it."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.past_attention import past_average, past_scores, past_weights
from regard.layers.scores import Score


class Shares(NamedTuple):
    """How a step's probability is shared out: e^log_g + Σ_j e^log_a[j] = 1."""

    log_g: Float[Tensor, "B T"]
    log_a: Float[Tensor, "B T M"]


class CopyAttention(nn.Module):
    """P(w) = g p(w) + Σ_{i: x_i = w} a_i,   g + Σ_i a_i = 1

    q_t = tanh(W h_t + b),   z_ti = score(q_t, h_i) for the M positions i before t
    fixed      g a constant,                       a = (1 - g) softmax(z)
    learned    g = σ(u·[h_t; c_t] + β),            a = (1 - g) softmax(z),   c_t = Σ_i softmax(z)_i h_i
    sentinel   [a; g] = softmax([z; q_t·s])

    learned: See et al. 2017, whose gate reads the step's input too; sentinel: Merity et al. 2016, whose q this is in
    all three. Where there is nothing to copy from, g = 1. At the start g is about GATE_AT_START, by β, or by where s
    lies along tanh(b): from s = 0 a young network would copy 99 words of 100 blindly, and from 0.9 it learned to copy
    later (figures in docs/LOG.md).
    """

    GATE_AT_START = 0.5

    def __init__(self, d_model: int, score: str, max_memory: int, mix: str, g: float = 0.8) -> None:
        """`g` is the constant of the fixed mixture."""
        super().__init__()
        self.d_model, self.max_memory, self.mix = d_model, max_memory, mix
        self.query = nn.Linear(d_model, d_model)  # W, b
        self.score = Score(score, d_model)
        self.gate = nn.Linear(2 * d_model, 1) if mix == "learned" else None  # u, β
        self.sentinel = nn.Parameter(torch.empty(1, d_model)) if mix == "sentinel" else None  # s
        self.log_g, self.log_rest = math.log(g), math.log1p(-g)
        odds = math.log(self.GATE_AT_START / (1 - self.GATE_AT_START))
        with torch.no_grad():
            if self.gate is not None:
                self.gate.bias.fill_(odds)
            if self.sentinel is not None:
                b = self.query.bias.tanh()
                self.sentinel.copy_((odds + math.log(max_memory)) * b / b.square().sum())

    def forward(
        self, h: Float[Tensor, "B T D"], keys: Float[Tensor, "B R D"], is_there: Bool[Tensor, "B T M"]
    ) -> Shares:
        """`keys` are the M states before the window and the T of it, R = M + T; `is_there` tells which of them are."""
        q = self.query(h).tanh()
        z = past_scores(self.score, q, keys, self.max_memory)  # (B, T, M)
        if self.sentinel is not None:
            log_a, log_g = past_weights(z, is_there, functional.linear(q, self.sentinel))
            return Shares(log_g, log_a)
        log_a, _ = past_weights(z, is_there)
        if self.gate is None:
            log_g = torch.full_like(log_a[..., 0], self.log_g)
            log_rest = torch.full_like(log_g, self.log_rest)
        else:
            c = past_average(log_a.exp().to(keys.dtype), keys)
            odds = self.gate(torch.cat([h, c], dim=-1)).squeeze(-1).to(log_a.dtype)  # (B, T)
            log_g, log_rest = functional.logsigmoid(odds), functional.logsigmoid(-odds)
        is_any = is_there.any(dim=-1)  # (B, T)
        return Shares(log_g.where(is_any, 0.0), log_rest[..., None] + log_a)

    def flops_per_token(self) -> int:
        """Forward cost of a token that sees a full memory, without the scores that are computed and hidden."""
        D, M = self.d_model, self.max_memory
        gate = {"fixed": 0, "learned": 2 * D * M + 2 * 2 * D, "sentinel": 2 * D}[self.mix]
        return 2 * D * D + self.score.flops(1, 1, M) + gate
