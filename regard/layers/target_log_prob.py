"""log P of one target a row, without ever holding all logits.

    l_n = z_{n, y_n} - log Σ_v exp z_nv,      z_n = W h_n + b

A mixture of distributions needs log P of each target on its own, so its loss cannot be summed up as in
`cross_entropy`: the gradient of each row arrives only in the backward pass. Logits are computed there once more, chunk
by chunk, dl_n/dz_n = onehot - softmax: a third product of V x D a token buys (chunk, V) instead of (N, V) numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear

from regard.layers.cross_entropy import rows_at_once


def chunked_log_probs(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " N"],
    chunk: int | None = None,
) -> Float[Tensor, " N"]:
    """log P(targets[n] | hidden[n]), `chunk` rows of logits at a time."""
    if chunk is None:
        chunk = rows_at_once(hidden.device.type, weight.shape[0])
    log_probs: Tensor = _ChunkedLogProbs.apply(hidden, weight, bias, targets, chunk)  # type: ignore[no-untyped-call]
    return log_probs


def plain_log_probs(
    hidden: Float[Tensor, "N D"], weight: Float[Tensor, "V D"], bias: Float[Tensor, " V"] | None, targets: Tensor
) -> Float[Tensor, " N"]:
    """The same numbers with all logits held: what the chunked version is tested against."""
    return linear(hidden, weight, bias).log_softmax(dim=-1).gather(1, targets[:, None])[:, 0]


class _ChunkedLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, chunk: int) -> Tensor:
        device = hidden.device.type
        ctx.low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        ctx.chunk = chunk
        # What autocast does: multiply in the low precision, take the softmax in (at least) float32.
        high = torch.promote_types(ctx.low, torch.float32)
        log_sum = torch.empty(len(hidden), dtype=high, device=hidden.device)
        log_probs = torch.empty_like(log_sum)
        with torch.autocast(device, enabled=False):
            W, b = weight.to(ctx.low), None if bias is None else bias.to(ctx.low)
            for rows in _chunks(len(hidden), chunk):
                z = linear(hidden[rows].to(ctx.low), W, b).to(high)  # (C, V)
                log_sum[rows] = z.logsumexp(dim=-1)
                log_probs[rows] = z.gather(1, targets[rows, None])[:, 0] - log_sum[rows]
        ctx.save_for_backward(hidden, weight, bias, targets, log_sum)
        return log_probs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_log_probs: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, log_sum = ctx.saved_tensors
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        d_bias = None if bias is None else torch.zeros_like(bias)
        with torch.autocast(hidden.device.type, enabled=False):
            W, b = weight.to(ctx.low), None if bias is None else bias.to(ctx.low)
            for rows in _chunks(len(hidden), ctx.chunk):
                h, d = hidden[rows].to(ctx.low), d_log_probs[rows, None]  # (C, D), (C, 1)
                z = linear(h, W, b).to(log_sum.dtype)  # (C, V)
                d_logits = z.sub_(log_sum[rows, None]).exp_().mul_(-d)
                d_logits.scatter_add_(1, targets[rows, None], d.to(d_logits.dtype))
                d_low = d_logits.to(ctx.low)
                d_hidden[rows] = (d_low @ W).to(hidden.dtype)
                d_weight += d_low.t() @ h
                if d_bias is not None:
                    d_bias += d_logits.sum(dim=0)
        return d_hidden, d_weight, d_bias, None, None


def _chunks(n: int, chunk: int) -> list[slice]:
    return [slice(start, start + chunk) for start in range(0, n, chunk)]
