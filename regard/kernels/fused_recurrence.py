"""The fused recurrent kernels as functions: for several layers at once, and for weights that are no parameters."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.kernels.device import is_lowered
from regard.kernels.onnx_recurrence import LayerWeights, write_recurrence


def run_layer(
    kind: str,
    module: nn.RNN | nn.GRU | nn.LSTM,
    x: Float[Tensor, "B T I"],
    state: tuple[Float[Tensor, "B H"], ...],
    weights: Callable[[], LayerWeights],
    has_mask: bool,
) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "B H"], ...]]:
    """All steps of one layer at once.

    A GPU without autocast reads the weights where `module` laid them for cuDNN. Anything else is handed `weights`: on a
    CPU that computes the same, without the time the module takes to check what it is given.
    """
    if torch.onnx.is_in_onnx_export():
        return write_recurrence(kind, x, state, weights())
    before = tuple([part[None] for part in state])  # (1, B, H) each
    if has_mask or not x.is_cuda or is_lowered(x):
        y, after = fused_recurrence(kind, x, before, [weights()], is_training=module.training)
    else:
        y, last = module(x, before if len(before) > 1 else before[0])
        after = last if isinstance(last, tuple) else (last,)
    return y, tuple([part[0] for part in after])


def fused_recurrence(
    kernel: str,
    x: Float[Tensor, "B T I"],
    state: tuple[Float[Tensor, "L B H"], ...],
    layers: Sequence[LayerWeights],
    p_dropout: float = 0.0,
    is_training: bool = False,
) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "L B H"], ...]]:
    """L layers of one kind and one width, by one call: h^l_t = layer_l(dropout(h^{l-1}_t), h^l_{t-1}).

    `kernel` is "lstm", "gru" or "rnn". A single call lets cuDNN work on step t of layer l and step t+1 of layer l-1 at
    the same time, which one call a layer cannot.

    Under autocast on a GPU the kernels compute in its type, and the state is handed on in its own. Left to itself,
    autocast gives cuDNN's recurrent kernels float16 whatever it was asked for, where gradients of a mean over many
    tokens vanish.
    """
    computed: tuple[Tensor, tuple[Tensor, ...]] = _compute(kernel, x, state, layers, p_dropout, is_training)
    return computed


def exclude_from_compiling() -> None:
    """Let torch.compile call the fused kernels as they are from now on: it would unroll their steps.

    Not done where they are defined, since it imports the compiler, which is a third of what a start takes.
    """
    global _compute
    _compute = torch.compiler.disable(_compute_all)  # type: ignore[no-untyped-call]


def _compute_all(
    kernel: str,
    x: Float[Tensor, "B T I"],
    state: tuple[Float[Tensor, "L B H"], ...],
    layers: Sequence[LayerWeights],
    p_dropout: float,
    is_training: bool,
) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "L B H"], ...]]:
    if not is_lowered(x):
        layers = in_one_buffer(layers, x.dtype) if x.is_cuda else layers
        return _call_kernel(kernel, x, state, layers, p_dropout, is_training)
    dtype = torch.get_autocast_dtype("cuda")
    with torch.autocast("cuda", enabled=False):
        before, weights = tuple(part.to(dtype) for part in state), in_one_buffer(layers, dtype)
        y, after = _call_kernel(kernel, x.to(dtype), before, weights, p_dropout, is_training)
    return y, tuple(new.to(old.dtype) for new, old in zip(after, state, strict=True))


def _call_kernel(
    kernel: str,
    x: Float[Tensor, "B T I"],
    state: tuple[Float[Tensor, "L B H"], ...],
    layers: Sequence[LayerWeights],
    p_dropout: float,
    is_training: bool,
) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "L B H"], ...]]:
    weights = [weight for layer in layers for weight in layer]
    settings = (True, len(layers), p_dropout, is_training, False, True)  # biases, ..., bidirectional, batch first
    if kernel == "lstm":
        y, h, c = torch.lstm(x, state, weights, *settings)
        return y, (h, c)
    y, h = (torch.gru if kernel == "gru" else torch.rnn_tanh)(x, state[0], weights, *settings)
    return y, (h,)


_compute: Callable[..., Any] = _compute_all  # or what torch.compile does not look into


def in_one_buffer(layers: Sequence[LayerWeights], dtype: torch.dtype) -> list[LayerWeights]:
    """Lay the weights side by side in one new piece of memory: the matrices of all layers, then all biases.

    This is the order in which cuDNN reads them. Given any other it warns and puts them so itself, at each call. The
    copy is differentiable; 27 MB for two layers of 650, which a GPU moves in well under a hundredth of a step's time.
    """
    matrices = [weight for layer in layers for weight in layer[:2]]
    biases = [weight for layer in layers for weight in layer[2:]]
    whole = matrices + biases
    flat = torch.cat([weight.reshape(-1) for weight in whole]).to(dtype)
    parts = [part.view_as(w) for part, w in zip(torch.split(flat, [w.numel() for w in whole]), whole, strict=True)]
    n = len(matrices)
    return [(parts[i], parts[i + 1], parts[n + i], parts[n + i + 1]) for i in range(0, n, 2)]
