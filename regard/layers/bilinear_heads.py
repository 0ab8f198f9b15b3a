"""The older form of many heads: one bilinear matrix a head, and the average of the heads."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.causal_attention import causal_attention
from regard.layers.attention import count_causal_pairs, plain_attention
from regard.layers.taps import Taps

Inputs = tuple[Tensor, int]
"""All x so far (B, capacity, D), and how many of the positions are filled. Written in place."""


class BilinearHeads(nn.Module):
    """Causal self-attention with N heads of full width, averaged.

    A_n = softmax(x W_n xᵀ / √D)
    head_n = A_n x V_n
    y = (head_1 + ... + head_N) / N

    The score is the bilinear one of Luong et al. 2015. In the concatenated form (Vaswani et al. 2017) W_n is W_q W_kᵀ
    and V_n is W_v W_o, through a bottleneck of width D/N; here each is whole: 2 N D² parameters instead of 4 D². Keys
    and values are x itself, so a cache keeps x alone, once for all heads.

    The textbook's form has no √D. With it W_n starts with spread 1/√D, where scores of normalised x are of size one;
    without it the spread would be 1/D, and one update by Adam, which moves each of the D² numbers alike, would move the
    scores √D times as far.
    """

    def __init__(self, d_model: int, n_heads: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.p_dropout = n_heads, p_dropout
        self.W = nn.Parameter(torch.empty(n_heads, d_model, d_model))
        self.V = nn.Parameter(torch.empty(n_heads, d_model, d_model))
        for weight in (self.W, self.V):
            nn.init.normal_(weight, std=1 / math.sqrt(d_model))

    def forward(
        self, x: Float[Tensor, "B T D"], cache: Inputs | None = None, taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B T D"], Inputs | None]:
        q = x[:, None] @ self.W  # (B, N, T, D)
        if cache is not None:
            inputs, n = cache
            S, capacity = n + x.shape[1], inputs.shape[1]
            assert capacity >= S, f"{S} positions in a cache with room for {capacity}"
            inputs[:, n:S] = x
            x, cache = inputs[:, :S], (inputs, S)
        p_dropout = self.p_dropout if self.training else 0.0
        keys = x[:, None].expand(-1, self.n_heads, -1, -1)  # (B, N, S, D)
        if taps is None:
            seen = causal_attention(q, keys, keys, p_dropout)  # A_n x: (B, N, T, D)
        else:
            seen = plain_attention(q, keys, keys, p_dropout, taps)
        return (seen @ self.V).mean(dim=1), cache

    def start(self, B: int, capacity: int, like: Tensor) -> Inputs:
        """An empty cache for `capacity` positions."""
        return like.new_zeros(B, capacity, self.W.shape[1]), 0

    def flops_per_token(self, n_context: int) -> int:
        """Two D×D products a head, and for each position that is seen a multiply-add a head and channel, twice."""
        N, D, _ = self.W.shape
        return 2 * 2 * N * D * D + 2 * 2 * N * D * count_causal_pairs(n_context) // n_context
