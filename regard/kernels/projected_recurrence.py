"""All steps of projected LSTM layers that stand side by side, with a backward pass written out.

Taken step by step, a layer is a dozen small kernels a step, its backward pass two dozen, and two directions are twice
that: a GPU waits for each. Here layers that read at the same time are one multiplication a batch, whatever does not
depend on the step before is computed for all steps at once (the products with x, the slopes of the gates, the gradients
of all weights), and what is left are nine kernels a step, and six backward. They are torch's own operations: a CPU
computes the same, and a test holds it to the plain loop of `regard.layers.projected_lstm`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class ProjectedWeights(NamedTuple):
    """Of N layers: W x + U h + b are the four gates' inputs, and P makes a state of the cells."""

    W: Float[Tensor, "N G I"]
    U: Float[Tensor, "N G P"]
    b: Float[Tensor, "N G"]
    P: Float[Tensor, "N P H"]


def projected_recurrence(
    x: Float[Tensor, "N B T I"],
    h: Float[Tensor, "N B P"],
    c: Float[Tensor, "N B H"],
    weights: ProjectedWeights,
    keeps: Float[Tensor, "N B T"] | None = None,
) -> tuple[Float[Tensor, "N B T P"], Float[Tensor, "N B P"], Float[Tensor, "N B H"]]:
    """i, f, g, o = σ, σ, tanh, σ of W x + U k h + b;   c' = f k c + i g,   h' = P (o tanh(c')).

    k, of `keeps`, is 0 at a step that begins with no memory and 1 at any other. Returns all h', and the last h' and c'.
    """
    k = None if keeps is None else keeps.transpose(1, 2).unsqueeze(-1).contiguous()  # (N, T, B, 1)
    y, last = _ProjectedRecurrence.apply(x.transpose(1, 2).contiguous(), h, c, *weights, k)  # type: ignore[no-untyped-call]
    return y.transpose(1, 2), y[:, -1], last


class _ProjectedRecurrence(torch.autograd.Function):
    """Time stands before the rows: a step is (N, B, ...) with rows in one piece, and all steps are (N, T B, ...)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor, P: Tensor, k: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        (N, T, B, _), H = x.shape, c.shape[-1]
        gates = torch.baddbmm(b[:, None], x.flatten(1, 2), W.mT).view(N, T, B, 4 * H)
        cells = x.new_empty(N, T + 1, B, H)
        cells[:, 0] = c
        y = x.new_empty(N, T, B, P.shape[1])
        first = h
        for t in range(T):
            before = cells[:, t] if k is None else cells[:, t] * k[:, t]
            z = gates[:, t].baddbmm_(h if k is None else h * k[:, t], U.mT)
            z[..., : 2 * H].sigmoid_()
            z[..., 2 * H : 3 * H].tanh_()
            z[..., 3 * H :].sigmoid_()
            i, f, g, o = z.chunk(4, dim=-1)
            c = torch.mul(f, before, out=cells[:, t + 1]).addcmul_(i, g)
            h = torch.bmm(c.tanh().mul_(o), P.mT, out=y[:, t])
        ctx.save_for_backward(x, first, gates, cells, y, W, U, P, k)
        return y, cells[:, T].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor, dc: Tensor) -> tuple[Tensor | None, ...]:
        x, first, gates, cells, y, W, U, P, k = ctx.saved_tensors
        T = y.shape[1]
        i, f, g, o = gates.chunk(4, dim=-1)  # (N, T, B, H) each
        tanh_c = cells[:, 1:].tanh()
        # What a cell's gradient is multiplied by on its way to i, f, g, and a state's on its way to o and to the cell.
        c = cells[:, :-1] if k is None else cells[:, :-1] * k
        slopes = torch.stack([g * i * (1 - i), c * f * (1 - f), i * (1 - g * g)], dim=3)  # (N, T, B, 3, H)
        slope_o, slope_c = tanh_c * o * (1 - o), o * (1 - tanh_c * tanh_c)
        dh = dy.contiguous().clone()
        d_gates = torch.empty_like(gates).view(*o.shape[:3], 4, -1)  # (N, T, B, 4, H)
        dc = dc.clone()
        for t in reversed(range(T)):
            if t + 1 < T and k is None:
                dh[:, t].baddbmm_(d_gates[:, t + 1].flatten(2), U)
            elif t + 1 < T:
                dh[:, t].addcmul_(torch.bmm(d_gates[:, t + 1].flatten(2), U), k[:, t + 1])
            d_out = torch.bmm(dh[:, t], P)  # of o tanh(c)
            dc.addcmul_(d_out, slope_c[:, t])
            torch.mul(d_out, slope_o[:, t], out=d_gates[:, t, :, 3])
            torch.mul(dc[:, :, None], slopes[:, t], out=d_gates[:, t, :, :3])
            dc.mul_(f[:, t])
            if k is not None:
                dc.mul_(k[:, t])
        before = torch.cat([first[:, None], y[:, :-1]], dim=1)  # h, (N, T, B, P)
        d_first = torch.bmm(d_gates[:, 0].flatten(2), U)
        if k is not None:
            before, d_first = before * k, d_first * k[:, 0]
        rows = d_gates.flatten(3).flatten(1, 2)  # (N, T B, 4 H)
        return (
            torch.bmm(rows, W).view(x.shape),
            d_first,
            dc,
            torch.bmm(rows.mT, x.flatten(1, 2)),
            torch.bmm(rows.mT, before.flatten(1, 2)),
            rows.sum(dim=1),
            torch.bmm(dh.flatten(1, 2).mT, (o * tanh_c).flatten(1, 2)),
            None,
        )
