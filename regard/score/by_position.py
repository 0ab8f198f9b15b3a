"""Loss by position in the context: who uses a long past?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.models.next_token import NextToken


def windows_of(ids: NDArray[np.integer[Any]], n_context: int, n_windows: int) -> NDArray[np.integer[Any]]:
    """At most n_windows pieces of n_context + 1 tokens, evenly spread over a text: (W, n_context + 1)."""
    room = len(ids) - n_context
    if room < 1:
        raise RegardError(
            f"Loss by position needs {n_context + 1} tokens in a row, and the text has {len(ids)}. "
            f"Give a longer text or a smaller n_context."
        )
    starts = np.unique(np.linspace(0, room - 1, min(n_windows, room)).astype(np.int64))
    windows: NDArray[np.integer[Any]] = ids[starts[:, None] + np.arange(n_context + 1)]
    return windows


def nats_by_position(
    model: NextToken, ids: NDArray[np.integer[Any]], n_context: int, n_windows: int = 256
) -> NDArray[np.float64]:
    """Mean -log P of the token that follows 1, 2, ... n_context tokens of past: (n_context,).

    The same windows for every model, and nothing before them: what falls along the curve is what more past is worth.
    """
    nats: NDArray[np.float64] = model.nats_of_windows(windows_of(ids, n_context, n_windows)).mean(axis=0)
    return nats
