"""Attention of every position to the M positions before it, and to no others.

T queries stand behind a memory of M older positions, so there are M + T keys, and query t may look at the keys
t ... t+M-1: a band of the (T, M+T) score matrix. Everything here is laid out along the band, (B, T, M), where entry
[t, j] is about key t + j: the last column is always the position just before. No mask is needed for the band, and the
cost of T queries is O(T M), since long stretches are cut into blocks of about M queries.
"""

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn import functional

from regard.layers.attention import tapped_weights
from regard.layers.scores import Score
from regard.layers.taps import Taps

MIN_BLOCK = 32


def block_length(n_memory: int) -> int:
    """How many queries are computed at once: as many as the memory is long, so that half of the scores are of use."""
    return max(n_memory, MIN_BLOCK)


def past_scores(
    score: Score, q: Float[Tensor, "B T D"], k: Float[Tensor, "B R D"], n_memory: int
) -> Float[Tensor, "B T M"]:
    """score(q_t, k_{t+j}) at [t, j]; R = M + T."""
    C = block_length(n_memory)
    parts = [
        along_band(score(block, k[:, i * C : i * C + block.shape[1] + n_memory]), n_memory)
        for i, block in enumerate(torch.split(q, C, dim=1))
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def past_weights(
    scores: Float[Tensor, "B T M"], is_there: Bool[Tensor, "B T M"], sentinel: Float[Tensor, "B T 1"] | None = None
) -> tuple[Float[Tensor, "B T M"], Float[Tensor, "B T"]]:
    """log a, a = softmax over the positions that are there; and the log of what is left for the sentinel.

    A sentinel's score competes in the softmax as one more position (Merity et al. 2016). Where no position is there,
    all log a are as low as the type can say and e^(log a) is exactly zero.
    """
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    lowest = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(~is_there, lowest)
    whole = scores if sentinel is None else torch.cat([scores, sentinel.to(scores.dtype)], dim=-1)
    log_a = whole.log_softmax(dim=-1)
    left = log_a[..., -1] if sentinel is not None else torch.full_like(log_a[..., 0], lowest)
    return log_a[..., : scores.shape[-1]].masked_fill(~is_there, lowest), left


def past_average(a: Float[Tensor, "B T M"], v: Float[Tensor, "B R D"]) -> Float[Tensor, "B T D"]:
    """Σ_j a[t, j] v_{t+j}; R = M + T."""
    n_memory = a.shape[2]
    C = block_length(n_memory)
    parts = [
        off_band(block) @ v[:, i * C : i * C + block.shape[1] + n_memory]  # (B, C, C+M) @ (B, C+M, D)
        for i, block in enumerate(torch.split(a, C, dim=1))
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def tapped_past_attention(
    score: Score,
    q: Float[Tensor, "B T D"],
    k: Float[Tensor, "B R D"],
    is_there: Bool[Tensor, "B R"],
    n_memory: int,
    taps: Taps,
    n_before: int = 0,
) -> Float[Tensor, "B T D"]:
    """Σ_s a_ts k_s, a = softmax of score(q_t, k_s) over the M positions before t; whole matrices, which are kept.

    The first `n_before` keys, of which none is there, are left out.
    """
    T, R = q.shape[1], k.shape[1]
    t, s = torch.arange(T, device=q.device)[:, None], torch.arange(R, device=q.device)  # key t is M before query t
    may_look = ((s >= t) & (s < t + n_memory) & is_there[:, None])[:, :, n_before:]  # (B, T, S)
    keys = taps.keep("key", k[:, None, n_before:])[:, 0]
    values = taps.keep("value", k[:, None, n_before:])  # (B, 1, S, D)
    scores = score(taps.keep("query", q[:, None])[:, 0], keys)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    a = tapped_weights(scores[:, None], may_look[:, None], taps)  # (B, 1, T, S)
    return taps.keep("z", a.to(values.dtype) @ values)[:, 0]


def past_windows(x: Shaped[Tensor, "B R"], n_memory: int) -> Shaped[Tensor, "B T M"]:
    """x_{t+j} at [t, j], without copying: the band of something that each position has one of."""
    return x.unfold(1, n_memory, 1)[:, : x.shape[1] - n_memory]


def along_band(x: Float[Tensor, "B T R"], n_memory: int) -> Float[Tensor, "B T M"]:
    """x[t, t+j] at [t, j]: rows of length R read with a stride of R + 1, so that each starts one further right."""
    B, T, R = x.shape
    return functional.pad(x.reshape(B, T * R), (0, T)).view(B, T, R + 1)[:, :, :n_memory]


def off_band(a: Float[Tensor, "B T M"]) -> Float[Tensor, "B T R"]:
    """a[t, j] at [t, t+j] of a matrix with R = M + T columns, and zero elsewhere: undoes `along_band`."""
    B, T, M = a.shape
    R = M + T
    return functional.pad(a, (0, T + 1)).reshape(B, T * (R + 1))[:, : T * R].view(B, T, R)
