"""Scaled dot-product attention, one head and many, with a cache of keys and values."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.causal_attention import blocked_causal_attention, is_for_blocks
from regard.layers.record import Record
from regard.layers.step_attention import step_attention


class Followed(NamedTuple):
    """How much of a cache is filled, and whose row each position lies in: `step_attention` says what for."""

    n: Int[Tensor, " one"]
    where: Int[Tensor, "R C"]

    def own_rows(self) -> Int[Tensor, "R C"]:
        """The table of rows that each lie where they are."""
        R = torch.arange(len(self.where), dtype=self.where.dtype, device=self.where.device)
        return R[:, None].expand_as(self.where)


KeysAndValues = tuple[Tensor, Tensor, int | Tensor | Followed]
"""Keys (B, N, capacity, K), values likewise, and how many of the positions are filled. Written in place, but where
gradients are kept: a step uses up the cache it is handed and returns the one to go on with. The number may be a tensor
(1,) on the device, alone or with a table of rows, for steps of one position that are replayed as a CUDA graph
(`step_attention`); whoever replays them counts."""


def attention_weights(
    q: Float[Tensor, "*batch T K"],
    k: Float[Tensor, "*batch S K"],
    may_look: Bool[Tensor, "T S"] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "*batch T S"]:
    """A = softmax(scale q kᵀ), where scale is 1/√K if not given (Vaswani et al. 2017).

    `may_look[t, s]` False takes source s out of the sum for query t.
    """
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if may_look is not None:
        scores = scores.masked_fill(~may_look, -math.inf)
    return scores.softmax(dim=-1)


def causal_mask(T: int, S: int, device: torch.device) -> Bool[Tensor, "T S"]:
    """True where a query may look: the T queries are the last of the S positions, each sees itself and its past."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


class MultiHeadAttention(nn.Module):
    """Causal self-attention with N heads (Vaswani et al. 2017, section 3.2).

    q, k, v = W x + b, each cut into N heads of width K = D/N
    head_n = softmax(q_n k_nᵀ / √K) v_n
    y = W_o [head_1; ...; head_N] + b_o
    """

    def __init__(self, d_model: int, n_heads: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.p_dropout = n_heads, p_dropout
        self.qkv = nn.Linear(d_model, 3 * d_model)  # W_q, W_k, W_v in one product
        self.out = nn.Linear(d_model, d_model)  # W_o

    def forward(
        self, x: Float[Tensor, "B T D"], cache: KeysAndValues | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], KeysAndValues | None]:
        B, T, D = x.shape
        qkv = self.qkv(x)  # (B, T, 3 D)
        if cache is not None and not isinstance(cache[2], int):
            return self.out(self.step(qkv[:, 0], cache))[:, None], cache
        q, k, v = self.heads(qkv)
        if cache is not None:
            k, v, cache = extend(cache, k, v)  # (B, N, S, K)
        p_dropout = self.p_dropout if self.training else 0.0
        y = fused_attention(q, k, v, p_dropout) if record is None else plain_attention(q, k, v, p_dropout, record)
        return self.out(y.transpose(1, 2).reshape(B, T, D)), cache

    def heads(self, qkv: Float[Tensor, "B T P"]) -> list[Float[Tensor, "B N T K"]]:
        """q, k and v, head by head."""
        B, T, _ = qkv.shape
        return [part.view(B, T, self.n_heads, -1).transpose(1, 2) for part in qkv.chunk(3, dim=-1)]

    def step(self, qkv: Float[Tensor, "B P"], cache: KeysAndValues) -> Float[Tensor, "B D"]:
        """[head_1; ...; head_N] of one new position, over a cache that counts on the device."""
        q, k, v = self.heads(qkv[:, None])
        keys, values, n = cache
        assert not isinstance(n, int), "a number of Python's goes to `forward`"
        count, where = n if isinstance(n, Followed) else (n, None)
        return step_attention(q, k, v, keys, values, count, where).reshape(len(qkv), -1)

    def start(self, B: int, capacity: int, like: Tensor) -> KeysAndValues:
        """An empty cache for `capacity` positions."""
        K = self.qkv.in_features // self.n_heads
        return like.new_zeros(B, self.n_heads, capacity, K), like.new_zeros(B, self.n_heads, capacity, K), 0

    def flops_per_token(self, n_context: int) -> int:
        """Four D×D products, and for each of the n positions one multiply-add a channel in q kᵀ and one in A v."""
        D = self.qkv.in_features
        return 2 * 4 * D * D + 2 * 2 * n_context * D


def extend(cache: KeysAndValues, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, KeysAndValues]:
    """Write the new keys and values behind those there are; return all that are filled, and the cache."""
    keys, values, n = cache
    assert isinstance(n, int), "a number on the device goes to step_attention"
    S, capacity = n + k.shape[2], keys.shape[2]
    assert capacity >= S, f"{S} positions in a cache with room for {capacity}"
    if k.requires_grad:  # what the backward pass will read must not be written over
        keys = torch.cat([keys[:, :, :n], k, keys[:, :, S:]], dim=2)
        values = torch.cat([values[:, :, :n], v, values[:, :, S:]], dim=2)
    else:
        keys[:, :, n:S] = k
        values[:, :, n:S] = v
    return keys[:, :, :S], values[:, :, :S], (keys, values, S)


def with_room(cache: KeysAndValues, n_more: int) -> KeysAndValues:
    """The cache with room for `n_more` positions: itself, or one twice as long where it is full.

    One that grows is never much longer than what is in it, and so cheap to reorder, which copies all of it.
    """
    keys, values, n = cache
    assert isinstance(n, int), "what is replayed as a graph cannot grow"
    capacity = keys.shape[2]
    if n + n_more <= capacity:
        return cache
    n_new = max(capacity, n + n_more - capacity)
    return functional.pad(keys, (0, 0, 0, n_new)), functional.pad(values, (0, 0, 0, n_new)), n


def plain_attention(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    p_dropout: float,
    record: Record,
) -> Float[Tensor, "B N T K"]:
    A = attention_weights(q, k, causal_mask(q.shape[2], k.shape[2], q.device))
    record.keep("attention", A)
    return functional.dropout(A, p_dropout) @ v


def fused_attention(
    q: Float[Tensor, "B N T K"], k: Float[Tensor, "B N S K"], v: Float[Tensor, "B N S K"], p_dropout: float
) -> Float[Tensor, "B N T K"]:
    """The same, by whatever is fastest."""
    T, S = q.shape[2], k.shape[2]
    if T == 1:  # the newest position sees all there is
        return functional.scaled_dot_product_attention(q, k, v, dropout_p=p_dropout)
    if T == S:
        if is_for_blocks(q, p_dropout):
            return blocked_causal_attention(q, k, v)
        return functional.scaled_dot_product_attention(q, k, v, dropout_p=p_dropout, is_causal=True)
    return functional.scaled_dot_product_attention(q, k, v, causal_mask(T, S, q.device), p_dropout)
