"""Self-attention within a window: every position looks at itself and the few before it."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.attention import attention_weights, fused_attention
from regard.layers.record import Record

MIN_BLOCK = 16  # smaller blocks cost more in calls than they save in work

Rolling = tuple[Tensor, Tensor, int]
"""Keys (B, N, R, K) and values of the last R = min(r, capacity) positions, position n in slot n mod R, and how many
positions there were. Written in place: a step uses up the cache it is handed and returns the one to go on with."""


class RestrictedAttention(nn.Module):
    """Causal self-attention with N heads over the last r positions (Vaswani et al. 2017, section 4).

    q, k, v = W x + b, each cut into N heads of width K = D/N
    head_t = Σ_s A_ts v_s,   A_ts = softmax over s = t-r+1 ... t of q_t · k_s / √K
    y = W_o [head_1; ...; head_N] + b_o

    r = n_window counts the position itself. Time and memory are O(r T D): nothing of size T x T is ever made, unless a
    record asks for the weights.
    """

    def __init__(self, d_model: int, n_heads: int, n_window: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.n_window, self.p_dropout = n_heads, n_window, p_dropout
        self.qkv = nn.Linear(d_model, 3 * d_model)  # W_q, W_k, W_v in one product
        self.out = nn.Linear(d_model, d_model)  # W_o

    def forward(
        self, x: Float[Tensor, "B T D"], cache: Rolling | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], Rolling | None]:
        B, T, D = x.shape
        heads = (part.view(B, T, self.n_heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        q, k, v = heads  # each (B, N, T, K)
        if cache is not None:
            k, v, cache = roll(cache, k, v, self.n_window, is_ordered=record is not None)  # (B, N, P+T, K)
        p_dropout = self.p_dropout if self.training else 0.0
        if record is None:
            y = restricted_attention(q, k, v, self.n_window, p_dropout)
        else:
            may_look = restricted_mask(T, k.shape[2], self.n_window, x.device)
            A = record.keep("attention", attention_weights(q, k, may_look))
            y = functional.dropout(A, p_dropout) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, D)), cache

    def start(self, B: int, capacity: int, like: Tensor) -> Rolling:
        """An empty rolling cache: however long the text, it holds r positions."""
        shape = B, self.n_heads, min(self.n_window, capacity), self.qkv.in_features // self.n_heads
        return like.new_zeros(shape), like.new_zeros(shape), 0

    def flops_per_token(self, n_context: int) -> int:
        """As full attention, but over r positions at most.

        What a token costs that is read through the cache; blocks compute up to 2r scores a token and hide half.
        """
        D = self.qkv.in_features
        return 2 * 4 * D * D + 2 * 2 * min(n_context, self.n_window) * D


def restricted_mask(T: int, S: int, r: int, device: torch.device) -> Bool[Tensor, "T S"]:
    """True where a query may look: the T queries are the last of the S positions, each sees itself and r-1 before."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T).triu(S - T - r + 1)


def restricted_attention(
    q: Float[Tensor, "B N T K"], k: Float[Tensor, "B N S K"], v: Float[Tensor, "B N S K"], r: int, p_dropout: float
) -> Float[Tensor, "B N T K"]:
    """Blocks of C = r queries, each against the 2 C keys of its own block and the one before.

    The queries are the last T of the S positions, of which fewer than r came before them. Small windows take blocks of
    MIN_BLOCK.
    """
    B, N, T, K = q.shape
    P = k.shape[2] - T
    if T == 1 or r >= P + T:  # every query sees all there is
        return fused_attention(q, k, v, p_dropout)
    C = max(r, MIN_BLOCK)
    M = -(-T // C)  # blocks; the last is filled up, and what it adds cut off again
    n_fill = M * C - T
    q = functional.pad(q, (0, 0, 0, n_fill)).reshape(B * N, M, C, K)
    k, v = (neighbours(functional.pad(x, (0, 0, C - P, n_fill)).reshape(B * N, M + 1, C, K)) for x in (k, v))
    may_look = restricted_mask(C, 2 * C, r, q.device).repeat(M, 1, 1)  # (M, C, 2 C)
    may_look[0, :, : C - P] = False  # what fills up the front
    y = functional.scaled_dot_product_attention(q, k, v, may_look, p_dropout)  # (B N, M, C, K)
    return y.reshape(B, N, M * C, K)[:, :, :T]


def neighbours(blocks: Float[Tensor, "BN M1 C K"]) -> Float[Tensor, "BN M C2 K"]:
    """Each block behind the one before it: M+1 blocks of C make M of 2 C."""
    return torch.cat([blocks[:, :-1], blocks[:, 1:]], dim=2)


def roll(cache: Rolling, k: Tensor, v: Tensor, r: int, is_ordered: bool = False) -> tuple[Tensor, Tensor, Rolling]:
    """The keys and values that T new queries may see, oldest first but for T = 1; and the cache with the new ones.

    Position n takes the place of n - R. A single query then sees all that is left, and the order of keys means nothing
    to it, so none is copied unless `is_ordered`.
    """
    keys, values, n = cache
    T, R = k.shape[2], keys.shape[2]
    assert r == R or n + T <= R, f"{n + T} positions in a cache with room for {R}"
    if T == 1 and not is_ordered:
        keys[:, :, n % R], values[:, :, n % R] = k[:, :, 0], v[:, :, 0]
        n += 1
        return keys[:, :, : min(n, R)], values[:, :, : min(n, R)], (keys, values, n)
    device = k.device
    before = torch.arange(max(0, n - r + 1), n, device=device) % R
    seen_k, seen_v = torch.cat([keys[:, :, before], k], dim=2), torch.cat([values[:, :, before], v], dim=2)
    n_kept = min(T, R)
    slots = torch.arange(n + T - n_kept, n + T, device=device) % R
    keys[:, :, slots], values[:, :, slots] = k[:, :, T - n_kept :], v[:, :, T - n_kept :]
    return seen_k, seen_v, (keys, values, n + T)
