"""W x + b on a CPU by the faster of two libraries.

torch multiplies float32 by MKL; oneDNN, which is in torch too, was faster on one thread of an AMD CPU with AVX-512 (an
EPYC, 2026-11-16): by 8 to 14% in y = W x + b and in dx = Wᵀ dy, and not in dW = dy xᵀ. On an AMD CPU with AVX2 alone
MKL was faster, by 13%.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

MIN_PRODUCTS = 2**23  # multiply-adds below which a call costs more than it gains
MIN_PACKED = 2**20  # the same where the weights are in oneDNN's order
MAX_BY_COLUMNS = 4  # vectors at a time
MAX_COPIED = 2**30  # bytes


class Layout(NamedTuple):
    """A copy of a weight in another order of its numbers."""

    weight: Tensor
    of: tuple[int, int]
    """Which weight it is a copy of, and in which state."""
    first: float
    """The weight's first number: the fused AdamW changes weights without leaving another trace."""

    def is_of(self, W: Tensor) -> bool:
        """Whether W is still what it was when it was copied."""
        return self.of == _identify(W)

    def is_for(self, x: Tensor) -> bool:
        """Whether products with x are faster this way."""
        n_rows = x.numel() // x.shape[-1]
        if self.weight.is_mkldnn:
            return n_rows > 1 and x.numel() * self.weight.shape[0] >= MIN_PACKED
        return n_rows <= MAX_BY_COLUMNS


class Linear(nn.Linear):
    """y = W x + b, by whichever library is faster, and from a copy of W in a better order where `lay_out` made one."""

    layout: Layout | None = None

    def forward(self, x: Float[Tensor, "*batch I"]) -> Float[Tensor, "*batch O"]:
        found = self.layout
        if found is None or torch.is_grad_enabled() or not found.is_of(self.weight) or not found.is_for(x):
            return linear(x, self.weight, self.bias)
        return linear(x, found.weight, self.bias)

    def train(self, mode: bool = True) -> Linear:
        """Forget the copy of a weight that is about to change."""
        if mode:
            self.layout = None
        return super().train(mode)


def lay_out(model: nn.Module, n_rows: int) -> None:
    """Copy the weights of a model on a CPU that is used for a while, not trained: for products of `n_rows` vectors.

    It takes as much memory as the weights once more, MAX_COPIED bytes at most, or nothing is copied; the copies serve
    until the weights change or are trained.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, Linear)]
    if sum(layer.weight.nbytes for layer in layers) > MAX_COPIED:
        return
    for layer in layers:
        layer.layout = copy_in_order(layer.weight, n_rows, layer.layout)


def copy_in_order(W: Float[Tensor, "O I"], n_rows: int, before: Layout | None = None) -> Layout | None:
    """A copy of W for products with `n_rows` vectors at a time, `before` if it is one; None where W itself is as good.

    One vector is multiplied fastest where what lies side by side is long: 256 x 1,024 by columns took 66 µs and by rows
    138, 1,024 x 256 142 and 89. For several, oneDNN has an order of its own: 32 vectors by 256 x 1,024 took 213 µs
    instead of 343 by MKL, 2,048 by 768 x 3,072 89 ms instead of 105.
    """
    if W.device.type != "cpu" or W.is_inference():
        return None
    is_packed = n_rows > 1 and W.dtype in (torch.float32, torch.bfloat16) and prefers_onednn()
    first = W[0, 0].item()
    if before is not None and before.is_of(W) and before.first == first and before.weight.is_mkldnn == is_packed:
        return before
    if is_packed:
        return Layout(torch.ops.mkldnn._reorder_linear_weight(W.detach()), _identify(W), first)
    if n_rows <= MAX_BY_COLUMNS and W.shape[0] > W.shape[1]:
        return Layout(W.detach().t().contiguous().t(), _identify(W), first)
    return None


def _identify(W: Tensor) -> tuple[int, int]:
    return W.data_ptr(), W._version


def linear(
    x: Float[Tensor, "*batch I"], W: Float[Tensor, "O I"], b: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "*batch O"]:
    """y = W x + b; W may be the weight of a `Layout`."""
    if W.is_mkldnn:
        return multiply(x, W, b)
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
    if x.numel() * W.shape[0] < MIN_PRODUCTS or x.dtype != torch.float32 or W.dtype != torch.float32:
        return False
    if x.device.type != "cpu" or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
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
