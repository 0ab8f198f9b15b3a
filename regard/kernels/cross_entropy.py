"""Cross-entropy of the next token without ever holding all logits.

    nats = Σ_n m_n (log Σ_v exp(w_v·h_n + b_v) - (w_{y_n}·h_n + b_{y_n})),      count = Σ_n m_n

The logits of N tokens over V words fill N x V numbers: 2 GB for 10,000 tokens over 50,000 words, and backward wants
them twice. The gradient is known in closed form, dnats/dlogit = m (softmax - onehot), so each chunk of rows computes
its own gradients while its logits are there, adds them up, and forgets the logits: (chunk, V) is all that ever exists.

A loss is a sum and a count. Who divides, divides once, over everything that one update saw.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.kernels.device import at_least_float32
from regard.kernels.linear import is_for_onednn, linear, multiply

# Logits held at once: 16 MB on a CPU. 2,048 x 8,192 logits took 0.38 s forward and backward in chunks of 256 to 1,024
# rows, 0.42 s in chunks of 128; a GPU wants larger multiplications.
MAX_LOGITS = {"cpu": 2**22, "cuda": 2**28}
# A GPU multiplies matrices fastest where every row begins at a multiple of 16 bytes: GPT-2's 50,257 words do not.
ROWS_MULTIPLE = 128
MAX_SCORED_LOGITS = 2**23  # held at once while scoring: 32 MB in float32


def chunked_cross_entropy(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " N"],
    mask: Bool[Tensor, " N"],
    chunk: int | None = None,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Sum of nats over the tokens where `mask` is True, and how many there are; `chunk` rows of logits at a time."""
    if chunk is None:
        chunk = rows_at_once(hidden.device.type, weight.shape[0])
    arguments = (hidden, weight, bias, targets, mask, chunk, torch.is_grad_enabled())
    nats: Tensor = _ChunkedCrossEntropy.apply(*arguments)  # type: ignore[no-untyped-call]
    return nats, mask.sum()


def rows_at_once(device_type: str, vocab_size: int) -> int:
    """How many rows of logits a chunk has."""
    n = max(64, MAX_LOGITS.get(device_type, 2**23) // vocab_size)
    return n if n < ROWS_MULTIPLE else n // ROWS_MULTIPLE * ROWS_MULTIPLE


def plain_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """`chunked_cross_entropy` with all logits held: what it is tested against."""
    logits = linear(hidden, weight, bias)  # (N, V)
    nats = cross_entropy(logits, targets, reduction="none")  # (N,)
    return (nats * mask).sum(), mask.sum()


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        mask: Tensor,
        chunk: int,
        is_training: bool,
    ) -> Tensor:
        device = hidden.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        # What autocast does: multiply in the low precision, take the softmax in (at least) float32.
        high = torch.promote_types(low, torch.float32)
        if device == "cuda" and low != torch.float64:
            with torch.autocast(device, enabled=False):
                nats, gradients = _on_gpu(hidden, weight, bias, targets, mask, chunk, is_training, low)
            ctx.save_for_backward(*gradients)
            return nats
        W, b = weight.to(low), None if bias is None else bias.to(low)
        nats = torch.zeros((), dtype=high, device=hidden.device)
        d_hidden = torch.empty_like(hidden) if is_training else None
        d_weight = torch.zeros_like(weight) if is_training else None
        d_bias = torch.zeros_like(bias) if is_training and bias is not None else None

        # One buffer for all chunks: on a CPU fresh memory for every chunk cost a third of the whole loss (page faults).
        buffer = torch.empty(min(chunk, len(hidden)), len(W), dtype=high, device=hidden.device)
        with torch.autocast(device, enabled=False):
            for start in range(0, hidden.shape[0], chunk):
                rows = slice(start, start + chunk)
                h, y = hidden[rows].to(low), targets[rows, None]
                m = mask[rows, None]  # (C, 1)
                z = _logits(h, W, b, buffer[: len(h)])  # (C, V)
                z_y, z_max = z.gather(1, y), z.amax(dim=-1, keepdim=True)
                p = torch.softmax(z, dim=-1, out=z)
                log_sum = z_max - p.amax(dim=-1, keepdim=True).log()  # log Σ exp z, since p_max = exp(z_max) / Σ exp z
                nats += ((log_sum - z_y) * m).sum()
                if d_hidden is None or d_weight is None:
                    continue
                d_logits = p.scatter_add_(1, y, -torch.ones_like(z_y))  # softmax minus the one-hot target
                # The mask scales D-wide rows after the multiplication, which is cheaper than V-wide ones before it.
                d_low = d_logits.to(low)
                d_hidden[rows] = linear(d_low, W.t()) * m
                _add_product(d_weight, d_low, h * m)
                if d_bias is not None:
                    d_bias += (d_logits.t() @ m.to(high)).squeeze(1)
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        return nats

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_nats: Tensor) -> tuple[Tensor | None, ...]:
        gradients = (None if d is None else d * d_nats.to(d.dtype) for d in ctx.saved_tensors)
        return *gradients, None, None, None, None


def _on_gpu(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    mask: Tensor,
    chunk: int,
    is_training: bool,
    low: torch.dtype,
) -> tuple[Tensor, tuple[Tensor | None, Tensor | None, Tensor | None]]:
    """The sums and gradients, where the softmax of a chunk is one kernel and W has rows of zeros up to a multiple.

    Logits of the added rows are zero and no part of the softmax; their gradients meet zeros, or are cut off.
    """
    from regard.kernels.cross_entropy_cuda import nats_and_gradient  # with Triton, which only a GPU has

    (V, D), N = weight.shape, len(hidden)
    W = torch.zeros(-(-V // ROWS_MULTIPLE) * ROWS_MULTIPLE, D, dtype=low, device=weight.device)
    W[:V] = weight
    h = hidden.to(low)
    nats = torch.empty(N, device=hidden.device)
    d_hidden = torch.empty_like(hidden) if is_training else None
    d_weight = torch.zeros(W.shape, dtype=weight.dtype, device=weight.device) if is_training else None
    d_bias = torch.zeros_like(bias) if is_training and bias is not None else None
    buffer = torch.empty(min(chunk, N), len(W), dtype=low, device=hidden.device)
    for start in range(0, N, chunk):
        rows = slice(start, start + chunk)
        z = torch.mm(h[rows], W.t(), out=buffer[: len(h[rows])])  # (C, V and a few)
        if bias is not None:
            z[:, :V] += bias
        nats_and_gradient(z, targets[rows], mask[rows], nats[rows], V)
        if d_hidden is None or d_weight is None:
            continue
        if d_hidden.dtype == low:
            torch.mm(z, W, out=d_hidden[rows])
        else:
            d_hidden[rows] = z @ W
        # In the precision of the sum at once: a product of its own, added afterwards, took a fifth longer.
        if d_weight.dtype == low:
            d_weight.addmm_(z.t(), h[rows])
        else:
            torch.addmm(d_weight, z.t(), h[rows], out_dtype=d_weight.dtype, out=d_weight)
        if d_bias is not None:
            d_bias += z[:, :V].sum(dim=0, dtype=d_bias.dtype)
    return nats.sum(), (d_hidden, None if d_weight is None else d_weight[:V], d_bias)


def _logits(h: Tensor, W: Tensor, b: Tensor | None, buffer: Tensor) -> Tensor:
    """h W^T + b, written into the buffer, in its precision."""
    if buffer.dtype != h.dtype:
        return buffer.copy_(linear(h, W, b))
    if is_for_onednn(h, W):
        return multiply(h, W, b)
    return torch.mm(h, W.t(), out=buffer) if b is None else torch.addmm(b, h, W.t(), out=buffer)


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total += a^T b, in total's precision."""
    if total.dtype == a.dtype:
        total.addmm_(a.t(), b)
    else:
        total += a.t() @ b


def nats_each(
    hidden: Float[Tensor, "B T D"], weight: Float[Tensor, "V D"], bias: Float[Tensor, " V"] | None, targets: Tensor
) -> Float[Tensor, "B T"]:
    """-log P(targets[b, t] | hidden[b, t]) in float32 at least, with few logits held at a time. For scoring."""
    n_rows = max(1, MAX_SCORED_LOGITS // len(weight))
    rows, answers = torch.split(hidden.flatten(0, 1), n_rows), torch.split(targets.flatten(), n_rows)
    parts = [
        cross_entropy(at_least_float32(linear(part, weight, bias)), answer, reduction="none")
        for part, answer in zip(rows, answers, strict=True)
    ]
    return torch.cat(parts).view(targets.shape)


def chunked_log_probs(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " N"],
    chunk: int | None = None,
) -> Float[Tensor, " N"]:
    """l_n = z_{n, y_n} - log Σ_v exp z_nv,  z_n = W h_n + b: log P of one target a row, `chunk` rows at a time.

    A mixture of distributions needs log P of each target on its own, so its loss cannot be summed up as in
    `chunked_cross_entropy`: the gradient of each row arrives only in the backward pass. Logits are computed there once
    more, chunk by chunk, dl_n/dz_n = onehot - softmax: a third product of V x D a token buys (chunk, V) instead of
    (N, V) numbers.
    """
    if chunk is None:
        chunk = rows_at_once(hidden.device.type, weight.shape[0])
    log_probs: Tensor = _ChunkedLogProbs.apply(hidden, weight, bias, targets, chunk)  # type: ignore[no-untyped-call]
    return log_probs


def plain_log_probs(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """`chunked_log_probs` with all logits held: what it is tested against."""
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
