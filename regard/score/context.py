"""Every model with the same past: what a text costs where nobody sees more than a number of tokens.

Recurrent models carry their state through a whole text, while a Transformer sees its window. Here every model reads
windows of `limit` tokens that overlap by half, each from nothing, as a model whose max_context is `limit` reads a text
(`regard/models/next_token.py`): a token has between half of the limit and all of it before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.models.next_token import NextToken


def nats_in_context(model: NextToken, ids: NDArray[np.integer[Any]], limit: int, eos: int) -> NDArray[np.float64]:
    """-log P of every token of a text, given at most the `limit` tokens before it; `eos` stands before the first.

    Costs about twice as much as reading the text once.
    """
    stride = limit - limit // 2
    n_shared = limit - stride
    text = np.concatenate([[eos], ids])
    nats = np.zeros(len(ids))
    starts = np.arange(0, max(len(ids) - n_shared, 1), stride)
    whole = starts[starts + limit <= len(ids)]
    found = model.nats_of_windows(text[whole[:, None] + np.arange(limit + 1)])  # (W, limit)
    for start, window in zip(whole.tolist(), found, strict=True):
        n_context = n_shared if start else 0
        nats[start + n_context : start + limit] = window[n_context:]
    for start in starts[len(whole) :].tolist():  # the last one, cut short by the end of the text
        n_context = n_shared if start else 0
        nats[start + n_context :] = model.nats_of_windows(text[None, start:])[0, n_context:]
    return nats
