"""How the learning rate moves: a factor in 0..1 on `optimizer.lr`, a pure function of where the run stands.

`progress` is the share of the budget that is spent, whatever the budget counts (steps, tokens or seconds), so that a
cosine always ends where the run ends.

    warm(step, progress) = min(1, max((step + 1) / n_warmup, progress / 0.1))
    cosine    p + (1 - p) (1 + cos(π progress)) / 2          p = p_final (Loshchilov & Hutter 2017)
    linear    p + (1 - p) (1 - progress)
    inverse-sqrt   sqrt(n_warmup / max(step + 1, n_warmup))   (Vaswani et al. 2017)
    plateau   max(p, factor ^ n_drops)

A run whose whole budget is shorter than its warm-up would never reach its rate; the second term of `warm` ends the
warm-up after a tenth of the budget at the latest.
"""

from __future__ import annotations

import math

from regard.training.config import ScheduleConfig

P_WARMUP = 0.1


def learning_factor(config: ScheduleConfig, step: int, progress: float, n_drops: int = 0) -> float:
    """The factor for the update that follows `step` finished ones; `n_drops` is counted by the plateau rule.

    >>> learning_factor(ScheduleConfig(name="linear", n_warmup=0, p_final=0.0), step=50, progress=0.25)
    0.75
    >>> learning_factor(ScheduleConfig(name="constant", n_warmup=10), step=1, progress=0.0)
    0.2
    """
    warm = 1.0
    if config.n_warmup:
        warm = min(1.0, max((step + 1) / config.n_warmup, progress / P_WARMUP))
    return warm * _shape(config, step, min(max(progress, 0.0), 1.0), n_drops)


def _shape(config: ScheduleConfig, step: int, progress: float, n_drops: int) -> float:
    p = config.p_final
    match config.name:
        case "cosine":
            return p + (1 - p) * (1 + math.cos(math.pi * progress)) / 2
        case "linear":
            return p + (1 - p) * (1 - progress)
        case "inverse-sqrt":
            n = max(config.n_warmup, 1)
            return math.sqrt(n / max(step + 1, n))
        case "plateau":
            return max(p, config.factor**n_drops)
        case _:
            return 1.0
