"""`step_linear` and `step_norm` as Triton kernels, a few outputs or a row for each program. Imported on a GPU only.

The weights do not depend on the kernel before, so a program asks for them first and waits for that kernel's results
afterwards (programmatic dependent launch, on Hopper and later): one kernel reads while the other one ends.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from regard.kernels.device import has_dependent_launch
from regard.kernels.gelu import A, C

MAX_BLOCK_IN = 4096  # channels of x at a time
MAX_BLOCK = 8192  # weights a program has under way at a time: 64 a thread
N_WARPS = 4
MIN_PROGRAMS = 264  # two for each processor of an H200
ACTIVATION_CODES = {None: 0, "gelu": 1, "gelu_erf": 2, "relu": 3, "swish": 4}


@triton.jit
def _activate(y, ACTIVATION: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    if ACTIVATION == 1:
        y = y * tl.sigmoid(y * (A + C * y * y))
    if ACTIVATION == 2:
        y = y * 0.5 * (1 + tl.erf(y * 0.7071067811865476))
    if ACTIVATION == 3:
        y = tl.maximum(y, 0.0)
    if ACTIVATION == 4:
        y = y * tl.sigmoid(y)
    return y


@triton.jit
def _linear(
    x_ptr, w_ptr, b_ptr, gain_ptr, shift_ptr, residual_ptr, y_ptr, n_in, n_out, epsilon,
    HAS_BIAS: tl.constexpr, HAS_NORM: tl.constexpr, HAS_RESIDUAL: tl.constexpr, ACTIVATION: tl.constexpr,
    A: tl.constexpr, C: tl.constexpr, BLOCK_OUT: tl.constexpr, BLOCK_IN: tl.constexpr, IS_ONE_BLOCK: tl.constexpr,
    IS_DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Every intermediate result is rounded to the model's type where the plain path rounds it."""
    row = tl.program_id(1).to(tl.int64)
    x_ptr += row * n_in
    dtype = y_ptr.dtype.element_ty
    o = tl.program_id(0) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    i = tl.arange(0, BLOCK_IN)
    first = tl.load(
        w_ptr + o[:, None].to(tl.int64) * n_in + i[None, :], mask=(o < n_out)[:, None] & (i < n_in)[None, :], other=0.0
    )
    if HAS_NORM:
        gain = tl.load(gain_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
        shift = tl.load(shift_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
    if HAS_BIAS:
        bias = tl.load(b_ptr + o, mask=o < n_out, other=0.0).to(tl.float32)
    if IS_DEPENDENT:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    x = tl.load(x_ptr + i, mask=i < n_in, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        residual = tl.load(residual_ptr + row * n_out + o, mask=o < n_out, other=0.0).to(tl.float32)
    if HAS_NORM:
        sums = x
        if not IS_ONE_BLOCK:
            for start in range(BLOCK_IN, n_in, BLOCK_IN):
                sums += tl.load(x_ptr + start + i, mask=start + i < n_in, other=0.0).to(tl.float32)
        mean = tl.sum(sums, 0) / n_in
        squares = tl.where(i < n_in, (x - mean) * (x - mean), 0.0)
        if not IS_ONE_BLOCK:
            for start in range(BLOCK_IN, n_in, BLOCK_IN):
                more = tl.load(x_ptr + start + i, mask=start + i < n_in, other=0.0).to(tl.float32)
                squares += tl.where(start + i < n_in, (more - mean) * (more - mean), 0.0)
        scale = 1 / tl.sqrt(tl.sum(squares, 0) / n_in + epsilon)
        x = ((x - mean) * scale * gain + shift).to(dtype).to(tl.float32)
    products = first.to(tl.float32) * x[None, :]
    if not IS_ONE_BLOCK:
        for start in range(BLOCK_IN, n_in, BLOCK_IN):
            j = start + i
            x = tl.load(x_ptr + j, mask=j < n_in, other=0.0).to(tl.float32)
            if HAS_NORM:
                gain = tl.load(gain_ptr + j, mask=j < n_in, other=0.0).to(tl.float32)
                shift = tl.load(shift_ptr + j, mask=j < n_in, other=0.0).to(tl.float32)
                x = ((x - mean) * scale * gain + shift).to(dtype).to(tl.float32)
            where = o[:, None].to(tl.int64) * n_in + j[None, :]
            w = tl.load(w_ptr + where, mask=(o < n_out)[:, None] & (j < n_in)[None, :], other=0.0)
            products += w.to(tl.float32) * x[None, :]
    y = tl.sum(products, 1)
    if HAS_BIAS:
        y += bias
    y = y.to(dtype).to(tl.float32)
    y = _activate(y, ACTIVATION, A, C)
    if HAS_RESIDUAL:
        y = y.to(dtype).to(tl.float32) + residual
    tl.store(y_ptr + row * n_out + o, y.to(dtype), mask=o < n_out)


def fused_step_linear(
    x: Tensor, W: Tensor, b: Tensor | None, norm: nn.LayerNorm | None, activation: str | None, residual: Tensor | None
) -> Tensor:
    x = x.contiguous()
    residual = None if residual is None else residual.contiguous()
    assert W.is_contiguous(), "rows of W lie one after the other"
    (n_out, n_in), B = W.shape, len(x)
    y = torch.empty(B, n_out, dtype=x.dtype, device=x.device)
    block_in, block_out = _blocks(n_in, n_out)
    nothing = y  # an address for what is not there and not read
    is_dependent = has_dependent_launch(x.device)
    _linear[((n_out + block_out - 1) // block_out, B)](
        x, W, nothing if b is None else b, nothing if norm is None else norm.weight,
        nothing if norm is None else norm.bias, nothing if residual is None else residual, y, n_in, n_out,
        0.0 if norm is None else norm.eps, HAS_BIAS=b is not None, HAS_NORM=norm is not None,
        HAS_RESIDUAL=residual is not None, ACTIVATION=ACTIVATION_CODES[activation], A=A, C=C,
        BLOCK_OUT=block_out, BLOCK_IN=block_in, IS_ONE_BLOCK=n_in <= block_in, IS_DEPENDENT=is_dependent,
        num_warps=N_WARPS, **({"launch_pdl": True} if is_dependent else {}),
    )  # fmt: skip
    return y


def _blocks(n_in: int, n_out: int) -> tuple[int, int]:
    """Channels and outputs of a program: enough weights under way at once, and enough programs to fill the card."""
    block_in = min(triton.next_power_of_2(n_in), MAX_BLOCK_IN)
    block_out = max(1, min(8, MAX_BLOCK // block_in))
    while block_out > 2 and n_out < block_out * MIN_PROGRAMS:
        block_out //= 2
    return block_in, block_out


@triton.jit
def _norm(
    x_ptr, y_ptr, gain_ptr, shift_ptr, sum_ptr, h_ptr, D, epsilon,
    HAS_Y: tl.constexpr, BLOCK: tl.constexpr, IS_DEPENDENT: tl.constexpr,
):  # fmt: skip
    """The sum is rounded to the model's type before it is normed, as the plain path does."""
    row = tl.program_id(0).to(tl.int64) * D
    i = tl.arange(0, BLOCK)
    gain = tl.load(gain_ptr + i, mask=i < D, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + i, mask=i < D, other=0.0).to(tl.float32)
    if IS_DEPENDENT:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    dtype = h_ptr.dtype.element_ty
    x = tl.load(x_ptr + row + i, mask=i < D, other=0.0).to(tl.float32)
    if HAS_Y:
        x = (x + tl.load(y_ptr + row + i, mask=i < D, other=0.0).to(tl.float32)).to(dtype)
        tl.store(sum_ptr + row + i, x, mask=i < D)
        x = x.to(tl.float32)
    mean = tl.sum(x, 0) / D
    apart = tl.where(i < D, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, 0) / D + epsilon)
    tl.store(h_ptr + row + i, (apart * scale * gain + shift).to(dtype), mask=i < D)


def fused_step_norm(x: Tensor, norm: nn.LayerNorm, y: Tensor | None) -> tuple[Tensor, Tensor]:
    x, (B, D) = x.contiguous(), x.shape
    y = None if y is None else y.contiguous()
    h = torch.empty_like(x)
    total = x if y is None else torch.empty_like(x)
    is_dependent = has_dependent_launch(x.device)
    _norm[(B,)](
        x, x if y is None else y, norm.weight, norm.bias, total, h, D, norm.eps,
        HAS_Y=y is not None, BLOCK=triton.next_power_of_2(D), IS_DEPENDENT=is_dependent, num_warps=4,
        **({"launch_pdl": True} if is_dependent else {}),
    )  # fmt: skip
    return total, h
