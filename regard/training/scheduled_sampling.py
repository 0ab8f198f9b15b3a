"""Which of the decoder's inputs are its own words (Bengio et al. 2015).

    ε(i) is the share of true words at update i, n = n_half the update at which it is a half:
    linear            ε = 1 - i / 2n
    exponential       ε = 2^(-i / n)
    inverse-sigmoid   ε = k / (k + exp(i / k)),   k ln k = n

The paper gives each a constant of its own; here one number, n, means the same in all three.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.training.teaching_config import TeachingConfig


def share_of_true_words(config: TeachingConfig, index: int) -> float:
    """ε at update `index`.

    >>> [round(share_of_true_words(TeachingConfig(mode="scheduled", decay="linear", n_half=10), i), 2) for i in (0, 10)]
    [1.0, 0.5]
    """
    if config.mode != "scheduled":
        return 1.0 if config.mode == "teacher" else 0.0
    n = config.n_half
    if config.decay == "linear":
        share = 1 - index / (2 * n)
    elif config.decay == "exponential":
        share = 2.0 ** (-index / n)
    else:
        k = steepness(n)
        share = 1 / (1 + math.exp(min(index / k - math.log(k), 700.0)))  # beyond, exp is no number any more
    return max(config.p_lowest, share)


def steepness(n: float) -> float:
    """k with k ln k = n, by Newton's steps.

    >>> round(steepness(2 * math.log(2)), 6)
    2.0
    """
    k = max(n, 2.0)
    for _ in range(100):
        step = (k * math.log(k) - n) / (math.log(k) + 1)
        k = max(k - step, 1.0 + 1e-9)
        if abs(step) < 1e-12 * k:
            break
    return k


def tell_share(config: TeachingConfig, index: int, n_rows: int) -> tuple[Float[Tensor, " B"], ...]:
    """ε at update `index` for each row of a batch, to go with it; nothing where all words are true ones."""
    share = share_of_true_words(config, index)
    return () if share == 1 else (torch.full((n_rows,), share),)


def own_words(share_true: Float[Tensor, " B"], n_words: int) -> Bool[Tensor, "B T"]:
    """True where the decoder reads its own last word; decided for each token by itself. The first input is a mark."""
    is_own = torch.rand(len(share_true), n_words, device=share_true.device) >= share_true[:, None]
    is_own[:, 0] = False
    return is_own
