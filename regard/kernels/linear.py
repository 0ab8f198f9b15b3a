"""W x + b on a CPU by the faster of two libraries.

torch multiplies float32 by MKL; oneDNN, which is in torch too, was faster on one thread of an AMD CPU with AVX-512 (an
EPYC, 2026-11-16): by 8 to 14% in y = W x + b and in dx = Wᵀ dy, and not in dW = dy xᵀ. On an AMD CPU with AVX2 alone
MKL was faster, by 13%.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

MIN_PRODUCTS = 2**23  # multiply-adds below which a call costs more than it gains


class Linear(nn.Linear):
    """y = W x + b, by whichever library is faster."""

    def forward(self, x: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*batch I"], W: Float[Tensor, "O I"], b: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "*batch O"]:
    """y = W x + b."""
    if not is_for_onednn(x, W):
        return functional.linear(x, W, b)
    if torch.is_grad_enabled() and (x.requires_grad or W.requires_grad):
        y: Tensor = _LinearByOneDNN.apply(x, W, b)  # type: ignore[no-untyped-call]
        return y
    return multiply(x, W, b)


def multiply(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """W x + b by oneDNN, without a gradient."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, W, b, "none", [], "")
    return y


def is_for_onednn(x: Tensor, W: Tensor) -> bool:
    """Whether oneDNN is the faster one for W x: in float32, for large products, on a CPU that it serves better."""
    if x.device.type != "cpu" or x.dtype != torch.float32 or W.dtype != torch.float32:
        return False
    if x.numel() * len(W) < MIN_PRODUCTS or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return False
    return prefers_onednn()


@cache
def prefers_onednn() -> bool:
    """Whether this is an AMD CPU with AVX-512, and torch has oneDNN's operator."""
    has_onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not has_onednn or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    try:
        is_amd = "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return is_amd and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _LinearByOneDNN(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, W)
        return multiply(x, W, b)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, W = ctx.saved_tensors
        needs_x, needs_W, needs_b = ctx.needs_input_grad
        rows = dy.reshape(-1, dy.shape[-1])  # (N, O)
        dx = multiply(rows, W.t()).view(x.shape) if needs_x else None
        dW = rows.t() @ x.reshape(-1, x.shape[-1]) if needs_W else None
        return dx, dW, rows.sum(dim=0) if needs_b else None
