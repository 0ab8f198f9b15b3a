"""Scaled dot-product attention, one head and many: to the past, to the last few positions, or to all that are there."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.causal_attention import causal_attention, causal_mask, window_attention, window_mask
from regard.kernels.full_attention import full_attention
from regard.kernels.kv_cache import AnyKVCache, KVCache, RollingKVCache
from regard.kernels.linear import Linear
from regard.layers.taps import Step, Taps


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


def masked_weights(
    scores: Float[Tensor, "*batch T S"], is_there: Bool[Tensor, "*mask S"]
) -> Float[Tensor, "*batch T S"]:
    """A = softmax of the scores over the positions that are there; all zero where none is.

    `is_there` has the dimensions of the scores, or ones in their places.
    """
    lowest = torch.finfo(scores.dtype).min  # and not -inf, which makes NaN of a source with nothing in it
    return scores.masked_fill(~is_there, lowest).softmax(dim=-1).masked_fill(~is_there, 0.0)


def masked_attention(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    is_there: Bool[Tensor, "B S"] | None,
    p_dropout: float = 0.0,
    wants_weights: bool = False,
    taps: Taps | None = None,
    prefix: str = "",
) -> tuple[Float[Tensor, "B N T K"], Float[Tensor, "B N T S"] | None]:
    """A v,  A = softmax(q kᵀ/√K) over the positions that are there, None: all; and A where it is wanted or tapped.

    The fused kernel hides A, so wanting it takes the plain path. `prefix` goes before the names of taps.
    """
    seen = None if is_there is None else is_there[:, None, None]  # (B, 1, 1, S)
    if taps is not None:
        return tapped_attention(q, k, v, seen, p_dropout, taps, prefix)
    if not wants_weights:
        return full_attention(q, k, v, seen, p_dropout), None
    if seen is None:
        A = attention_weights(q, k)
        return functional.dropout(A, p_dropout) @ v, A
    A = masked_weights(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), seen)
    return functional.dropout(A, p_dropout) @ v, A


def plain_attention(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    p_dropout: float,
    taps: Taps,
    n_window: int | None = None,
) -> Float[Tensor, "B N T K"]:
    """A v,  A = softmax(q kᵀ/√K) over the past, or over the last `n_window` positions of it; all of it is kept."""
    shape = q.shape[2], k.shape[2]
    may_look = causal_mask(*shape, q.device) if n_window is None else window_mask(*shape, n_window, q.device)
    return tapped_attention(q, k, v, may_look, p_dropout, taps)[0]


def tapped_attention(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    may_look: Bool[Tensor, "*mask S"] | None,
    p_dropout: float,
    taps: Taps,
    prefix: str = "",
) -> tuple[Float[Tensor, "B N T K"], Float[Tensor, "B N T S"]]:
    """z = A v and A = softmax(q kᵀ/√K), with every value in it kept, under names that begin with `prefix`.

    `may_look` False takes a source out of the sum for a query; it has the dimensions of A, or ones in their places.
    """
    q, k, v = (taps.keep(prefix + name, x) for name, x in (("query", q), ("key", k), ("value", v)))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    A = tapped_weights(scores, may_look, taps, prefix)
    return taps.keep(f"{prefix}z", functional.dropout(A, p_dropout) @ v), A


def tapped_weights(
    scores: Float[Tensor, "B N T S"], may_look: Bool[Tensor, "*mask S"] | None, taps: Taps | Step, prefix: str = ""
) -> Float[Tensor, "B N T S"]:
    """A = softmax of the scores over the positions that may be looked at; both are kept."""
    if may_look is not None:
        scores = scores.masked_fill(~may_look, -math.inf)
    scores = taps.keep(f"{prefix}scores", scores)
    A = scores.softmax(dim=-1) if may_look is None else masked_weights(scores, may_look.expand(scores.shape))
    return taps.keep(f"{prefix}attention", A)


class MultiHeadAttention(nn.Module):
    """Self-attention with N heads (Vaswani et al. 2017, section 3.2).

    q, k, v = W x + b, each cut into N heads of width K = D/N
    head_n = softmax(q_n k_nᵀ / √K) v_n
    y = W_o [head_1; ...; head_N] + b_o

    A position sees itself and its past; with `n_window` r (section 4, "restricted") itself and the r-1 positions before
    it, in time and memory O(r T D); handed a mask, all positions that are there; not causal and without a mask, all.
    Through a cache it is always causal: what comes later is not there yet.

    Two parts can be left out to see what they are for: without `has_values` v = x, so that heads average x itself, each
    its share of K channels; without `is_scaled` the scores are q·k.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        p_dropout: float = 0.0,
        n_window: int | None = None,
        is_causal: bool = True,
        has_values: bool = True,
        is_scaled: bool = True,
    ) -> None:
        super().__init__()
        self.n_heads, self.p_dropout, self.n_window, self.is_causal = n_heads, p_dropout, n_window, is_causal
        self.has_values, self.is_scaled = has_values, is_scaled
        self.qkv = Linear(d_model, (3 if has_values else 2) * d_model)  # W_q, W_k, W_v in one product
        self.out = Linear(d_model, d_model)  # W_o

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        cache: AnyKVCache | None = None,
        taps: Taps | None = None,
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], AnyKVCache | None]:
        parts = self.qkv(x)
        if not self.has_values:
            parts = torch.cat([parts, x.to(parts.dtype)], dim=-1)  # v = x
        y, cache = self.mix(parts, cache, taps, mask)
        return self.out(y), cache

    def mix(
        self,
        qkv: Float[Tensor, "B T P"],
        cache: AnyKVCache | None = None,
        taps: Taps | None = None,
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], AnyKVCache | None]:
        """[head_1; ...; head_N] of q, k and v side by side."""
        q, k, v = cut_heads(qkv, 3, self.n_heads)
        if not self.is_scaled:
            q = q * math.sqrt(q.shape[-1])  # so that every path, which divides by it, gives q·k
        p_dropout, r = self.p_dropout if self.training else 0.0, self.n_window

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if taps is not None:
                return plain_attention(q, k, v, p_dropout, taps, r)
            return causal_attention(q, k, v, p_dropout) if r is None else window_attention(q, k, v, r, p_dropout)

        if mask is not None or (cache is None and not self.is_causal):
            y, _ = masked_attention(q, k, v, mask, p_dropout, taps=taps)
        elif cache is None:
            y = attend(q, k, v)
        else:
            y, cache = cache.attend(q, k, v, attend, is_ordered=taps is not None)
        return join_heads(y), cache

    def start(self, B: int, capacity: int, like: Tensor) -> KVCache | RollingKVCache:
        """Make an empty cache for `capacity` positions; one with a window holds r of them at most."""
        N, K = self.n_heads, self.qkv.in_features // self.n_heads
        if self.n_window is None:
            return KVCache.empty(B, N, capacity, K, like)
        return RollingKVCache(*KVCache.empty(B, N, min(self.n_window, capacity), K, like), n_window=self.n_window)

    def flops_per_token(self, n_context: int, is_causal: bool = True) -> int:
        """Four D×D products, three where v = x; for each position seen a multiply-add a channel in q kᵀ and one in A v.

        What is masked is not charged, whether or not the path at hand computes it: causal attention costs what reading
        token by token through the cache costs.
        """
        D, n = self.qkv.in_features, n_context
        n_pairs = count_causal_pairs(n, self.n_window) if is_causal and self.is_causal else n * n
        return 2 * (4 if self.has_values else 3) * D * D + 2 * 2 * D * n_pairs // n


def count_causal_pairs(n_context: int, n_window: int | None = None) -> int:
    """Count the pairs of a query and a key that it sees: position t of 1 ... n_context sees t, or at most `n_window`.

    >>> count_causal_pairs(4), count_causal_pairs(4, n_window=2)
    (10, 7)
    """
    r = n_context if n_window is None else min(n_context, n_window)
    return r * (r + 1) // 2 + r * (n_context - r)


def cut_heads(x: Float[Tensor, "B T P"], n_parts: int, n_heads: int) -> list[Float[Tensor, "B N T K"]]:
    """Cut what lies side by side in x into its parts, and each into N heads of width K."""
    B, T, _ = x.shape
    return [part.transpose(1, 2) for part in x.view(B, T, n_parts, n_heads, -1).unbind(2)]


def join_heads(y: Float[Tensor, "B N T K"]) -> Float[Tensor, "B T D"]:
    """Put the heads side by side again."""
    return y.transpose(1, 2).flatten(2)
