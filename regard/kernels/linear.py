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
MIN_PACKED = 2**21  # the same where weights are packed


class Linear(nn.Linear):
    """y = W x + b, by whichever library is faster."""

    packed: Tensor | None = None
    """W laid out as oneDNN wants it, where `pack_weights` was asked for it."""

    def forward(self, x: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        if self.packed is not None and not torch.is_grad_enabled() and x.numel() * len(self.weight) >= MIN_PACKED:
            return multiply(x, self.packed, self.bias)
        return linear(x, self.weight, self.bias)


def pack_weights(model: nn.Module) -> None:
    """Lay out the weights of a model that is to be used on a CPU, and not trained, for faster products.

    It takes as much memory as the weights once more. Weights that are changed afterwards have to be packed again. On
    one thread, 2,048 rows of 768 by 3,072 took 89 ms this way, 93 without, and 105 by MKL.
    """
    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.packed = pack(layer.weight)


def pack(W: Float[Tensor, "O I"]) -> Tensor | None:
    """W laid out as oneDNN wants it, for `multiply`; None where that is of no use."""
    if W.device.type != "cpu" or W.dtype not in (torch.float32, torch.bfloat16) or not prefers_onednn():
        return None
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(W.detach())
    return packed


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
