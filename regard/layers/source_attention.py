"""A recurrent decoder's look at its source."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.state import side_by_side
from regard.layers.attention import masked_weights, tapped_weights
from regard.layers.scores import Score
from regard.layers.taps import Step, Taps

Looked = tuple[Tensor, Tensor, Any]
"""The source's states (B, S, D), which of them are there (B, S), and what the score needs of them: computed once, ()
where it is the states themselves."""


class SourceAttention(nn.Module):
    """a_ts = softmax over s of score(h_t, s_s),   c_t = Σ_s a_ts s_s,   h̃_t = tanh(W_c [c_t; h_t])

    (Luong et al. 2015, "global attention"; the MLP score is Bahdanau's, 2015.) One head; any score function.
    """

    def __init__(self, d_model: int, score: str) -> None:
        super().__init__()
        self.d_model = d_model
        self.score = Score(score, d_model)
        self.out = nn.Linear(2 * d_model, d_model, bias=False)  # W_c

    def start(self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Looked:
        keys = self.score.keys(states)
        return states, mask, () if keys is states else keys

    def keep_source(self, looked: Looked, R: int, taps: Taps) -> Looked:
        """What R targets look at, each with a source of its own, and kept."""
        states, is_there, _ = looked
        states, is_there = (part.repeat_interleave(R // len(states), dim=0) for part in (states, is_there))
        key, value = (taps.keep(f"cross_{name}", states[:, None])[:, 0] for name in ("key", "value"))
        return value, is_there, self.score.keys(key)

    def forward(
        self, h: Float[Tensor, "R T D"], looked: Looked, taps: Taps | Step | None = None
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R T S"]]:
        """h̃ and the weights a. R is B, or a multiple of it: R/B targets then look at each source.

        With taps R is B, and the source is what `keep_source` gave.
        """
        states, is_there, keys = looked
        B, S, _ = states.shape
        R, T, D = h.shape
        if taps is not None:
            h = taps.keep("cross_query", h[:, None])[:, 0]
        scores = self.score.against(side_by_side(h, B), keys if isinstance(keys, Tensor) else states)
        if taps is None:
            a = masked_weights(scores, is_there[:, None])  # (B, R/B T, S)
        else:
            a = tapped_weights(scores[:, None], is_there[:, None, None], taps, "cross_")[:, 0]
        c = (a.to(states.dtype) @ states).view(R, T, D)
        if taps is not None:
            c = taps.keep("cross_z", c[:, None])[:, 0]
        return torch.tanh(self.out(torch.cat([c.to(h.dtype), h], dim=-1))), a.view(R, T, S)

    def flops(self, n_source: int, n_target: int) -> int:
        D, n_pairs = self.d_model, n_source * n_target
        return self.score.flops(n_target, n_source, n_pairs) + 2 * D * n_pairs + n_target * 2 * 2 * D * D
