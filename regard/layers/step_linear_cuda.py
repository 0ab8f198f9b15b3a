"""`step_linear` as one Triton kernel: a program computes a few outputs of one row. Imported on a GPU only."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from regard.layers.gelu import A, C

BLOCK_IN = 1024  # channels of x at a time
ACTIVATION_CODES = {None: 0, "gelu": 1, "gelu_erf": 2, "relu": 3}


@triton.jit
def _linear(
    x_ptr, w_ptr, b_ptr, gain_ptr, shift_ptr, residual_ptr, y_ptr, n_in, n_out, epsilon,
    HAS_BIAS: tl.constexpr, HAS_NORM: tl.constexpr, HAS_RESIDUAL: tl.constexpr, ACTIVATION: tl.constexpr,
    A: tl.constexpr, C: tl.constexpr, BLOCK_OUT: tl.constexpr, BLOCK_IN: tl.constexpr,
):  # fmt: skip
    """Every intermediate result is rounded to the model's type where the plain path rounds it."""
    row = tl.program_id(1).to(tl.int64)
    x_ptr += row * n_in
    dtype = y_ptr.dtype.element_ty
    mean = 0.0
    scale = 1.0
    if HAS_NORM:
        sums = tl.zeros([BLOCK_IN], tl.float32)
        for start in range(0, n_in, BLOCK_IN):
            i = start + tl.arange(0, BLOCK_IN)
            sums += tl.load(x_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
        mean = tl.sum(sums, 0) / n_in
        squares = tl.zeros([BLOCK_IN], tl.float32)
        for start in range(0, n_in, BLOCK_IN):
            i = start + tl.arange(0, BLOCK_IN)
            x = tl.load(x_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
            squares += tl.where(i < n_in, (x - mean) * (x - mean), 0.0)
        scale = 1 / tl.sqrt(tl.sum(squares, 0) / n_in + epsilon)
    o = tl.program_id(0) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    products = tl.zeros([BLOCK_OUT, BLOCK_IN], tl.float32)
    for start in range(0, n_in, BLOCK_IN):
        i = start + tl.arange(0, BLOCK_IN)
        x = tl.load(x_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
        if HAS_NORM:
            gain = tl.load(gain_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
            shift = tl.load(shift_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
            x = ((x - mean) * scale * gain + shift).to(dtype).to(tl.float32)
        where = o[:, None].to(tl.int64) * n_in + i[None, :]
        w = tl.load(w_ptr + where, mask=(o < n_out)[:, None] & (i < n_in)[None, :], other=0.0)
        products += w.to(tl.float32) * x[None, :]
    y = tl.sum(products, 1)
    if HAS_BIAS:
        y += tl.load(b_ptr + o, mask=o < n_out, other=0.0).to(tl.float32)
    y = y.to(dtype).to(tl.float32)
    if ACTIVATION == 1:
        y = y * tl.sigmoid(y * (A + C * y * y))
    if ACTIVATION == 2:
        y = y * 0.5 * (1 + tl.erf(y * 0.7071067811865476))
    if ACTIVATION == 3:
        y = tl.maximum(y, 0.0)
    if HAS_RESIDUAL:
        y = y.to(dtype).to(tl.float32)
        y += tl.load(residual_ptr + row * n_out + o, mask=o < n_out, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n_out + o, y.to(dtype), mask=o < n_out)


def fused_step_linear(
    x: Tensor, W: Tensor, b: Tensor | None, norm: nn.LayerNorm | None, activation: str | None, residual: Tensor | None
) -> Tensor:
    x = x.contiguous()
    residual = None if residual is None else residual.contiguous()
    assert W.is_contiguous(), "rows of W lie one after the other"
    (n_out, n_in), B = W.shape, len(x)
    y = torch.empty(B, n_out, dtype=x.dtype, device=x.device)
    # So many outputs a program that a small layer still fills the card, and each thread has enough to wait for.
    n_block = 8 if n_in <= BLOCK_IN else 4
    nothing = y  # an address for what is not there and not read
    _linear[((n_out + n_block - 1) // n_block, B)](
        x, W, nothing if b is None else b, nothing if norm is None else norm.weight,
        nothing if norm is None else norm.bias, nothing if residual is None else residual, y, n_in, n_out,
        0.0 if norm is None else norm.eps, HAS_BIAS=b is not None, HAS_NORM=norm is not None,
        HAS_RESIDUAL=residual is not None, ACTIVATION=ACTIVATION_CODES[activation], A=A, C=C,
        BLOCK_OUT=n_block, BLOCK_IN=BLOCK_IN, num_warps=4,
    )  # fmt: skip
    return y
