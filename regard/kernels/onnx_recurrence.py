"""Recurrent layers as ONNX has them: one operator for all steps, in place of the fused kernels while a file is written.

torch would unroll the loop over the steps, and the file would read texts of one length alone.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

LayerWeights = tuple[Tensor, Tensor, Tensor, Tensor]
"""W (G, I), U (G, H), b (G,), b' (G,), with G = 4 H for an LSTM, 3 H for a GRU, H for an Elman layer."""

OPERATORS = {"rnn": "RNN", "gru": "GRU", "lstm": "LSTM"}
ORDER = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
"""Where ONNX's gates are among ours: z, r, n of r, z, n; i, o, f, g of i, f, g, o."""


def write_recurrence(
    kind: str, x: Float[Tensor, "B T I"], state: tuple[Float[Tensor, "B H"], ...], weights: LayerWeights
) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "B H"], ...]]:
    """All steps of one layer as one operator, which computes what `fused_recurrence` does.

    Here it yields shapes only; the numbers come when the file is run.

    A GRU's r comes after U_n, as in cuDNN and here (`linear_before_reset`).
    """
    W, U, b, b_prime = weights
    W, U, b, b_prime = (_reorder(each, kind) for each in (W, U, b, b_prime))
    (B, T, _), H = x.shape, U.shape[-1]
    attributes: dict[str, Any] = {"hidden_size": H} | ({"linear_before_reset": 1} if kind == "gru" else {})
    before = [part[None] for part in state]  # (1, B, H) each
    given = [x.transpose(0, 1), W[None], U[None], torch.cat([b, b_prime])[None], None, *before]
    y, *after = torch.onnx.ops.symbolic_multi_out(
        OPERATORS[kind],
        given,
        attributes,
        dtypes=[x.dtype] * (1 + len(state)),
        shapes=[(T, 1, B, H), *[(1, B, H)] * len(state)],  # steps, directions, texts, width
    )
    return y[:, 0].transpose(0, 1), tuple(part[0] for part in after)


def _reorder(weight: Tensor, kind: str) -> Tensor:
    """The rows of a weight with its gates in ONNX's order."""
    gates = weight.view(len(ORDER[kind]), -1, *weight.shape[1:])
    return torch.stack([gates[i] for i in ORDER[kind]]).flatten(0, 1)
